/** Tests if a new router does worse than the previous one, at any number of looks.
 *  In: outcomes of both. Out: harm or not yet, with the evidence. Pure.
 *  Each outcome i of the new router is paired with one outcome of the previous router, and each outcome is used once.
 *  The difference d_i = new − previous enters a confidence sequence for the mean of d. Harm is an upper bound below
 *  −margin. The sequence holds at all looks at once, so a look after every outcome adds no error. A router that is no
 *  worse is rolled back with probability at most alpha in its whole life.
 *  Two rules keep the order of the pairs independent of the outcomes. First, a rollout counts when its end is older
 *  than the time an outcome may take, in the order of the ends. Otherwise fast complaints would come before slow
 *  praise. A label that comes later is not counted. The order of the starts would drop rollouts that last longer than
 *  that time: where successes last longer than failures, this bias stays. Second, a pair never changes once it is made.
 *  The previous outcomes are either those from before the release, newest first, which assumes that requests are alike
 *  before and after. Or they are those of the rollouts that were held back, which needs no assumption. */
import { RollbookError } from "../base/index.ts";
import { ConfidenceSequence, type Range } from "../judge/ope/index.ts";

/** Outcome of one rollout whose decisions were all made by one router. */
export interface RoutedOutcome {
  readonly id: string;
  /** End time of the rollout. */
  readonly atMs: number;
  readonly reward: number;
}

export interface HarmRule {
  readonly alpha: number;
  readonly margin: number;
  readonly range: Range;
  /** `record`: outcomes from before the new router's first. `holdback`: outcomes from the same time as its own. */
  readonly comparedWith: "record" | "holdback";
}

export interface HarmEvidence extends HarmRule {
  readonly harm: boolean;
  readonly pairs: number;
  /** Mean rewards; NaN without a pair. */
  readonly fresh: number;
  readonly before: number;
  readonly difference: number;
  /** Upper bound of new minus previous. */
  readonly upper: number;
  readonly clipped: number;
  readonly terms: Float64Array;
  /** Ids of each pair: new, then previous. */
  readonly ids: readonly (readonly [string, string])[];
  /** Outcomes of the new router that wait for an outcome of the previous router. */
  readonly waiting: number;
}

export class HarmWatch {
  readonly #rule: HarmRule;
  readonly #sequence: ConfidenceSequence;
  readonly #terms: number[] = [];
  readonly #ids: (readonly [string, string])[] = [];
  readonly #waitingFresh: RoutedOutcome[] = [];
  readonly #waitingBefore: RoutedOutcome[] = [];
  readonly #seen = new Set<string>();
  #lastFresh: RoutedOutcome | undefined;
  #lastBefore: RoutedOutcome | undefined;
  #sums = { fresh: 0, before: 0 };
  #clipped = 0;
  #harm = false;

  constructor(rule: HarmRule) {
    const { alpha, range } = rule;
    if (!(alpha > 0 && alpha < 0.5))
      throw new RollbookError("bad-rule", { alpha }, `alpha ${alpha} is not between 0 and 0.5. Correct it.`);
    this.#rule = rule;
    const width = range.high - range.low;
    // The sequence is two-sided, and each side errs with half of 1 − level. Only one side is used, so its error is
    // alpha.
    this.#sequence = new ConfidenceSequence({ range: { low: -width, high: width }, level: 1 - 2 * alpha });
  }

  /** Adds outcomes. Outcomes that were offered before change nothing. Returns true if there is harm. */
  offer({ fresh, before }: { fresh: readonly RoutedOutcome[]; before: readonly RoutedOutcome[] }): boolean {
    const isRecord = this.#rule.comparedWith === "record";
    for (const outcome of [...fresh].sort(inOrder)) {
      if (this.#lastFresh !== undefined && inOrder(outcome, this.#lastFresh) <= 0) continue;
      this.#lastFresh = outcome;
      this.#waitingFresh.push(outcome);
    }
    for (const outcome of [...before].sort(isRecord ? (a, b) => inOrder(b, a) : inOrder)) {
      if (this.#seen.has(outcome.id)) continue;
      const isLate = this.#lastBefore !== undefined && inOrder(outcome, this.#lastBefore) <= 0;
      if (!isRecord && isLate) continue;
      this.#seen.add(outcome.id);
      this.#lastBefore = outcome;
      this.#waitingBefore.push(outcome);
    }
    while (!this.#harm && this.#waitingFresh.length > 0 && this.#waitingBefore.length > 0)
      this.#pair(this.#waitingFresh.shift()!, this.#waitingBefore.shift()!);
    return this.#harm;
  }

  evidence(): HarmEvidence {
    const pairs = this.#terms.length;
    const [fresh, before] = [this.#sums.fresh / pairs, this.#sums.before / pairs];
    return {
      ...this.#rule,
      ...{ harm: this.#harm, pairs, fresh, before, difference: fresh - before },
      upper: this.#sequence.interval().high,
      ...{ clipped: this.#clipped, terms: Float64Array.from(this.#terms), ids: [...this.#ids] },
      waiting: this.#waitingFresh.length,
    };
  }

  #pair(fresh: RoutedOutcome, before: RoutedOutcome): void {
    const [mine, theirs] = [this.#clip(fresh.reward), this.#clip(before.reward)];
    this.#sums = { fresh: this.#sums.fresh + mine, before: this.#sums.before + theirs };
    this.#terms.push(mine - theirs);
    this.#ids.push([fresh.id, before.id]);
    this.#sequence.add(mine - theirs);
    this.#harm = this.#sequence.interval().high < -this.#rule.margin;
  }

  #clip(reward: number): number {
    const { low, high } = this.#rule.range;
    const inside = Math.min(high, Math.max(low, reward));
    if (inside !== reward) this.#clipped++;
    return inside;
  }
}

function inOrder(a: RoutedOutcome, b: RoutedOutcome): number {
  return a.atMs - b.atMs || (a.id < b.id ? -1 : a.id > b.id ? 1 : 0);
}
