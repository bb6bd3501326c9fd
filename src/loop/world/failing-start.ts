/** Ends a window early that cannot succeed: its first rollouts all fail for one reason, as with an upstream that is down.
 *  In: results as they come. Out: a signal that begins no more rollouts, and an error that names the reason. */
import { RollbookError } from "../../base/index.ts";
import { failureReasons, outcomeOf } from "../../book/collect/index.ts";
import type { RolloutResult } from "../../collect/rollout/index.ts";

/** Rollouts that must fail for one reason before the window stops. */
const FIRST = 20;

export class FailingStart {
  readonly #fresh: RolloutResult[] = [];
  readonly #stop = new AbortController();

  get signal(): AbortSignal {
    return this.#stop.signal;
  }

  /** Results of an earlier process say nothing about this one: the cause may be corrected. */
  add(result: RolloutResult): void {
    if (this.#fresh.length >= FIRST || (result.state === "sealed" && result.earlier)) return;
    this.#fresh.push(result);
    if (this.#fresh.length === FIRST && this.#reason !== undefined) this.#stop.abort();
  }

  check(experiment: string): void {
    const reason = this.signal.aborted ? this.#reason : undefined;
    if (reason === undefined) return;
    const { owner, message } = reason;
    throw new RollbookError(
      "window-failing",
      { experiment, owner, failed: FIRST },
      `${experiment}: the first ${FIRST} rollouts failed for one reason (${owner}): ${message.split("\n")[0]}. Correct the cause, then continue with \`rollbook run resume --config FILE\`: it runs the others. Those that failed stay in the book and are not learned from.`,
    );
  }

  get #reason() {
    const outcomes = this.#fresh.map(outcomeOf);
    const [first, ...others] = failureReasons(outcomes.map(({ ending }) => ending));
    const isAll = first?.count === outcomes.length && outcomes.every(({ reward }) => reward === null);
    return isAll && others.length === 0 ? first : undefined;
  }
}
