/** Ends a window early if its rollouts cannot succeed, as with an upstream that is down.
 *  In: the ends of attempts, and results as they come. Out: a signal that stops new rollouts, and an error that names
 *  the reason. Does not seal: a rollout whose first attempt failed before the stop has no result, and runs again. */
import { asSentence, RollbookError } from "../../base/index.ts";
import { failureReasons, outcomeOf } from "../../book/collect/index.ts";
import type { RolloutResult } from "../../collect/rollout/index.ts";
import type { Ending } from "../../contract/index.ts";

/** Number of rollouts that must fail before the window stops. */
const FAILED = 20;

interface Cause {
  readonly owner: string;
  readonly message: string;
  readonly failed: number;
  readonly what: string;
  readonly more: string;
}

export class FailingWindow {
  readonly #enough: number;
  readonly #first: RolloutResult[] = [];
  readonly #tried = new Set<string>();
  #row: Ending[] = [];
  #cause: Cause | undefined;
  readonly #stop = new AbortController();

  /** `rollouts`: the number of rollouts of the window. */
  constructor(rollouts: number) {
    this.#enough = Math.min(FAILED, rollouts);
  }

  get signal(): AbortSignal {
    return this.#stop.signal;
  }

  /** Counts rollouts in a row that failed, but not by their agent or task. Later attempts of a rollout do not count:
   *  they come together at the end of the window, so a few prompts that no model answers would stop it. */
  tried(item: string, ending: Ending): void {
    const isOthers = ending.kind === "failed" && ending.owner !== "agent" && ending.owner !== "task";
    if (!isOthers) this.#row = [];
    else if (!this.#tried.has(item)) this.#row.push(ending);
    this.#tried.add(item);
    if (this.#row.length < this.#enough) return;
    this.#end(this.#row, {
      what: `${this.#row.length} rollouts in a row failed`,
      more: "",
    });
  }

  /** Stops if the first results are all failures for one reason. Results of an earlier process do not count: the cause
   *  may have been fixed since. */
  ended(result: RolloutResult): void {
    if (this.#first.length >= FAILED || (result.state === "sealed" && result.earlier)) return;
    this.#first.push(result);
    if (this.#first.length < FAILED) return;
    const outcomes = this.#first.map(outcomeOf);
    const endings = outcomes.map(({ ending }) => ending);
    const isOne = failureReasons(endings)[0]?.count === FAILED;
    if (!isOne || outcomes.some(({ reward }) => reward !== null)) return;
    this.#end(endings, {
      what: `the first ${FAILED} rollouts that ended all failed`,
      more: " Failed ones are not repeated, and training leaves them out.",
    });
  }

  #end(endings: readonly Ending[], told: Pick<Cause, "what" | "more">): void {
    const { owner, message } = failureReasons(endings)[0]!;
    this.#cause ??= { ...told, owner, message, failed: endings.length };
    this.#stop.abort();
  }

  /** `options`: those of the command that resumes. */
  check(experiment: string, options: string): void {
    if (this.#cause === undefined) return;
    const { owner, message, failed, what, more } = this.#cause;
    throw new RollbookError(
      "window-failing",
      { experiment, owner, failed },
      `${experiment} stopped: ${what}, by the ${owner}: ${asSentence(message.split("\n")[0]!)} Correct the cause, then run \`rollbook run resume ${options}\`. It runs the rollouts of the window that have no result yet; \`rollbook run status\` counts them.${more}`,
    );
  }
}
