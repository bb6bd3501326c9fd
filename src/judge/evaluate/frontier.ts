/** The cost–quality frontier of a two-model router, as RouteLLM measures it.
 *  In: a score per question (how much it needs the strong model), and 1 or 0 for each model's correctness. Out:
 *  accuracy by share of strong calls, APGR and CPT. Questions with equal scores are routed in the same way. */
import { RollbookError } from "../../base/index.ts";

interface RoutedOutcomes {
  readonly score: Float64Array;
  /** Per question, 1 if right. */
  readonly weak: ArrayLike<number>;
  readonly strong: ArrayLike<number>;
}

export interface FrontierPoint {
  /** Share of questions sent to the strong model. */
  readonly share: number;
  readonly quality: number;
}

/** Number of intervals between thresholds; RouteLLM uses 10. */
const PARTS = 10;

/** Quality at strong shares 0, 1/parts … 1. If a threshold falls inside a tie, the tie is split evenly. */
export function frontier(outcomes: RoutedOutcomes, parts = PARTS): FrontierPoint[] {
  const { score, weak, strong } = outcomes;
  checkOutcomes(outcomes);
  const order = byScore(score);
  return Array.from({ length: parts + 1 }, (_, p) => {
    const sent = rankedShares(score, p / parts, order);
    let right = 0;
    for (let i = 0; i < sent.length; i++) right += weak[i]! + sent[i]! * (strong[i]! - weak[i]!);
    return { share: p / parts, quality: right / score.length };
  });
}

/** The probability of sending each row to the strong model if `share` of the rows, highest scores first, go there. It
 *  is 1 or 0. If the threshold falls inside a tie, it is the tie's even share. */
export function rankedShares(score: Float64Array, share: number, order = byScore(score)): Float64Array {
  const called = Math.round(share * order.length);
  const sent = new Float64Array(order.length);
  for (let from = 0; from < order.length; ) {
    let to = from;
    while (to < order.length && score[order[to]!] === score[order[from]!]) to++;
    const part = Math.min(1, Math.max(0, (called - from) / (to - from)));
    for (let i = from; i < to; i++) sent[order[i]!] = part;
    from = to;
  }
  return sent;
}

/** Rows by score, highest first. */
export function byScore(score: Float64Array): Int32Array {
  return Int32Array.from(score.keys()).sort((a, b) => score[b]! - score[a]! || a - b);
}

/** Average performance gap recovered:
 *  the area between the frontier and the weak line, over the area of always-strong. */
export function apgr(points: readonly FrontierPoint[]): number {
  const { weak, gap } = gapOf(points);
  let area = 0;
  for (let p = 1; p < points.length; p++) {
    const [left, right] = [points[p - 1]!, points[p]!];
    area += (right.share - left.share) * ((left.quality + right.quality) / 2 - weak);
  }
  return area / gap;
}

/** Call-performance threshold: the smallest share of strong calls that recovers `part` of the gap, interpolated.
 *  Undefined if no share does. */
export function cpt(points: readonly FrontierPoint[], part: number): number | undefined {
  const { weak, gap } = gapOf(points);
  const wanted = weak + part * gap;
  for (let p = 0; p < points.length; p++) {
    const right = points[p]!;
    if (right.quality < wanted) continue;
    const left = points[p - 1];
    if (left === undefined) return right.share;
    return (
      left.share + ((wanted - left.quality) / (right.quality - left.quality)) * (right.share - left.share)
    );
  }
  return undefined;
}

function gapOf(points: readonly FrontierPoint[]): { weak: number; gap: number } {
  const weak = points[0]!.quality;
  const gap = points.at(-1)!.quality - weak;
  if (gap > 0) return { weak, gap };
  throw new RollbookError(
    "no-gap",
    { weak, gap },
    `the strong model is no better than the weak one (gap ${gap}): there is nothing to recover. Use the weak one.`,
  );
}

function checkOutcomes({ score, weak, strong }: RoutedOutcomes): void {
  const bad = score.findIndex((each) => !Number.isFinite(each));
  if (score.length > 0 && bad < 0 && weak.length === score.length && strong.length === score.length) return;
  throw new RollbookError(
    "bad-outcomes",
    { row: bad, scores: score.length, weak: weak.length, strong: strong.length },
    bad >= 0
      ? `row ${bad}: score ${score[bad]} is not finite. Repair the router.`
      : `${score.length} scores, ${weak.length} weak and ${strong.length} strong outcomes. Give one of each per question.`,
  );
}
