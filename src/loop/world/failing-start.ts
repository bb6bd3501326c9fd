/** Ends a window early if it cannot succeed: its first rollouts all fail for one reason, as with an upstream that is
 *  down.
 *  In: results as they come. Out: a signal that stops new rollouts, and an error that names the reason. */
import { asSentence, RollbookError } from "../../base/index.ts";
import { failureReasons, outcomeOf } from "../../book/collect/index.ts";
import type { RolloutResult } from "../../collect/rollout/index.ts";

/** Number of rollouts that must fail for one reason before the window stops. */
const FIRST = 20;

export class FailingStart {
  readonly #fresh: RolloutResult[] = [];
  readonly #stop = new AbortController();

  get signal(): AbortSignal {
    return this.#stop.signal;
  }

  /** Results of an earlier process do not count: the cause may have been fixed since. */
  add(result: RolloutResult): void {
    if (this.#fresh.length >= FIRST || (result.state === "sealed" && result.earlier)) return;
    this.#fresh.push(result);
    if (this.#fresh.length === FIRST && this.#reason !== undefined) this.#stop.abort();
  }

  /** `options`: those of the command that resumes. */
  check(experiment: string, options: string): void {
    const reason = this.signal.aborted ? this.#reason : undefined;
    if (reason === undefined) return;
    const { owner, message } = reason;
    throw new RollbookError(
      "window-failing",
      { experiment, owner, failed: FIRST },
      `${experiment} stopped: the first ${FIRST} rollouts that ended all failed, by the ${owner}: ${asSentence(message.split("\n")[0]!)} Correct the cause, then run \`rollbook run resume ${options}\`. It runs the rollouts of the window that have no result yet; \`rollbook run status\` counts them. Failed ones are not repeated, and training leaves them out.`,
    );
  }

  get #reason() {
    const outcomes = this.#fresh.map(outcomeOf);
    const [first, ...others] = failureReasons(outcomes.map(({ ending }) => ending));
    const isAll = first?.count === outcomes.length && outcomes.every(({ reward }) => reward === null);
    return isAll && others.length === 0 ? first : undefined;
  }
}
