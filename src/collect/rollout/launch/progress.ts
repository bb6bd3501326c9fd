/** Progress of a launch. In: results as they arrive. Out: counts, rates and the estimated time left. Does not print. */
import type { Clock } from "../../../base/index.ts";
import { outsideBaseline } from "../../../contract/index.ts";
import type { RolloutResult } from "./result.ts";

export interface Progress {
  readonly total: number;
  /** Sealed rollouts with any ending, including those of earlier runs. */
  readonly done: number;
  readonly earlier: number;
  readonly dead: number;
  /** Sealed failures, by owner. */
  readonly failed: Readonly<Record<string, number>>;
  /** Number of these failures that only the agent attributes to another owner. */
  readonly blamed: number;
  /** The most frequent reason of failed and set-aside rollouts. Null if there is none. */
  readonly commonFailure: { readonly reason: string; readonly count: number } | null;
  readonly truncated: number;
  readonly tokens: number;
  /** Sum over the calls with a known cost. */
  readonly costUsd: number;
  /** Number of calls with an unknown cost. */
  readonly unpriced: number;
  /** Usage of runs without a result: attempts that were retried, and runs that were killed or interrupted. */
  readonly givenUp: {
    readonly runs: number;
    readonly tokens: number;
    readonly costUsd: number;
    readonly unpriced: number;
  };
  /** Mean over labelled rollouts. Null while there is none. */
  readonly meanReward: number | null;
  readonly perSecond: number;
  /** Null while there is no estimate. */
  readonly etaMs: number | null;
}

/** The score that marked failures blamed by the agent, before endings had the field `declaredBy`. */
const OLD_BLAME = "blamed-by-agent";

export class LaunchTally {
  total = 0;
  /** Time at which the last claim of another process expires, if it is not renewed. */
  claimedUntilMs = 0;
  #done = 0;
  #earlier = 0;
  #dead = 0;
  #truncated = 0;
  #blamed = 0;
  #tokens = 0;
  #costUsd = 0;
  #unpriced = 0;
  readonly #givenUp = { runs: 0, tokens: 0, costUsd: 0, unpriced: 0 };
  #rewards = 0;
  #labelled = 0;
  readonly #failed: Record<string, number> = {};
  readonly #reasons = new Map<string, number>();
  readonly #clock: Clock;
  readonly #startMs: number;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#startMs = clock.nowMs();
  }

  add(result: RolloutResult): void {
    this.#countGivenUp(result.givenUp);
    if (result.state === "dead") {
      this.#dead++;
      this.#countReason(result.reason);
      return;
    }
    const { ending, usage, reward, earlier, scores } = result;
    this.#done++;
    if (earlier) this.#earlier++;
    if (ending.kind === "truncated") this.#truncated++;
    if (ending.kind === "failed") {
      this.#failed[ending.owner] = (this.#failed[ending.owner] ?? 0) + 1;
      this.#countReason(`${ending.owner}: ${ending.message}`);
    }
    if (ending.declaredBy === "agent" || scores.some(({ name }) => name === OLD_BLAME)) this.#blamed++;
    this.#tokens += usage.promptTokens + usage.completionTokens;
    this.#costUsd += usage.costUsd;
    this.#unpriced += usage.unpriced ?? 0;
    if (reward === null || outsideBaseline(ending) !== undefined) return;
    this.#rewards += reward;
    this.#labelled++;
  }

  #countGivenUp(spent: RolloutResult["givenUp"]): void {
    const { runs, promptTokens, completionTokens, costUsd, unpriced = 0 } = spent;
    this.#givenUp.runs += runs;
    this.#givenUp.tokens += promptTokens + completionTokens;
    this.#givenUp.costUsd += costUsd;
    this.#givenUp.unpriced += unpriced;
  }

  #countReason(reason: string): void {
    this.#reasons.set(reason, (this.#reasons.get(reason) ?? 0) + 1);
  }

  #commonFailure(): Progress["commonFailure"] {
    let common: Progress["commonFailure"] = null;
    for (const [reason, count] of this.#reasons)
      if (common === null || count > common.count) common = { reason, count };
    return common;
  }

  now(): Progress {
    const fresh = this.#done - this.#earlier + this.#dead;
    const nowMs = this.#clock.nowMs();
    const seconds = (nowMs - this.#startMs) / 1000;
    const perSecond = seconds > 0 ? fresh / seconds : 0;
    const left = this.total - this.#done - this.#dead;
    const claimedMs = this.claimedUntilMs - nowMs;
    return {
      total: this.total,
      done: this.#done,
      earlier: this.#earlier,
      dead: this.#dead,
      failed: { ...this.#failed },
      blamed: this.#blamed,
      commonFailure: this.#commonFailure(),
      truncated: this.#truncated,
      tokens: this.#tokens,
      costUsd: this.#costUsd,
      unpriced: this.#unpriced,
      givenUp: { ...this.#givenUp },
      meanReward: this.#labelled === 0 ? null : this.#rewards / this.#labelled,
      perSecond,
      etaMs:
        left === 0 ? 0 : perSecond > 0 ? Math.round(Math.max((left / perSecond) * 1000, claimedMs)) : null,
    };
  }
}
