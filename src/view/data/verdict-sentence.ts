/** An evaluation in one sentence for a reader who decides and does not read tables: better or not, by how much, how sure.
 *  In: an evaluation. Out: text. */
import { qualityOf } from "../../judge/evaluate/index.ts";
import type { Evaluation, Measure } from "../../judge/index.ts";
import type { Range } from "../../judge/ope/index.ts";
import { plural } from "../format.ts";

/** Whom the policy is compared with: the first of these that the log can carry. */
const RIVALS = [
  ["static", "the static table"],
  ["behaviour", "the policy behind the log"],
  ["single", "the best single candidate"],
] as const;

export interface SentenceFacts {
  /** The id of the revision. */
  readonly policy: string;
  /** What a unit is: a task, a session or a decision. */
  readonly unit: string;
  /** Where quality lies: a figure outside is cut for people. */
  readonly range?: Range | undefined;
}

export function verdictSentence(evaluation: Evaluation, { policy, unit, range }: SentenceFacts): string {
  const { contenders, comparisons, measures, units, certification } = evaluation;
  if (contenders[0]!.basis === "refused")
    return `verdict: this log cannot say how good ${policy} is. Do not release it on this evidence.`;
  const rival = RIVALS.find(([name]) => comparisons.some(({ against }) => against === name));
  if (rival === undefined)
    return `verdict: this log cannot compare ${policy} with any other policy. Do not release it on this evidence.`;
  const [against, called] = rival;
  const quality = qualityOf(measures);
  const facts = { evaluation, against, range: { measure: quality, range } };
  const main = comparisons.find((each) => each.against === against && each.measure === quality);
  const parts = [quality, ...measures.filter((each) => each === "cost")].flatMap((measure) =>
    partOf(measure, facts),
  );
  const trust = certification === "certified" ? "" : " NOT CERTIFIED: do not release it on this evidence.";
  return `verdict: ${policy} ${STANDS[main?.says ?? "no difference shown"]} ${called}: ${parts.join("; ")}. Judged by ${plural(units, unit)} that it has not seen.${trust}`;
}

const STANDS = {
  better: "is better than",
  worse: "is worse than",
  "no difference shown": "shows no clear difference from",
} as const;

interface PartFacts {
  readonly evaluation: Evaluation;
  readonly against: string;
  readonly range: { readonly measure: Measure; readonly range: Range | undefined };
}

/** `quality 0.81 instead of 0.74, a difference of +0.07 (between +0.02 and +0.12 with 95 % confidence)`. */
function partOf(measure: Measure, { evaluation, against, range }: PartFacts): string[] {
  const { contenders, comparisons, level } = evaluation;
  const found = comparisons.find((each) => each.against === against && each.measure === measure);
  const mine = contenders[0]!.values[measure];
  const theirs = contenders.find(({ name }) => name === against)?.values[measure];
  const interval = found?.difference.intervals[0];
  if (found === undefined || interval === undefined || mine === undefined || theirs === undefined) return [];
  const show = (value: number) => figure(range.measure === measure ? cut(value, range.range) : value);
  const band = `between ${signed(interval.low)} and ${signed(interval.high)} with ${figure(100 * level)} % confidence`;
  const word =
    measure === "cost" && found.says === "no difference shown" ? "no clear difference in cost, " : "";
  return [
    `${word}${measure} ${show(mine.estimate.value)} instead of ${show(theirs.estimate.value)}, a difference of ${signed(found.difference.estimate.value)} (${band})`,
  ];
}

function cut(value: number, range: Range | undefined): number {
  return range === undefined ? value : Math.min(range.high, Math.max(range.low, value));
}

const figure = (value: number) => String(Number(value.toPrecision(3)));
const signed = (value: number) => `${value < 0 ? "" : "+"}${figure(value)}`;
