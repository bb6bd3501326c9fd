/** Renders an evaluation as one sentence, for a reader who decides but does not read tables: result, difference,
 *  certainty.
 *  In: an evaluation. Out: text. */
import { joinFaults } from "../../base/index.ts";
import { isBurden, qualityOf } from "../../judge/evaluate/index.ts";
import type { Evaluation, Measure } from "../../judge/index.ts";
import { plural } from "../format.ts";

/** The baseline of the sentence is the first of these that the log supports. */
const BASELINES = [
  ["static", "the static table"],
  ["behaviour", "the policy behind the log"],
  ["single", "the best single candidate"],
] as const;

interface SentenceFacts {
  /** Id of the revision. */
  readonly policy: string;
  /** Kind of unit: a task, a session or a decision. */
  readonly unit: string;
}

export function verdictSentence(evaluation: Evaluation, { policy, unit }: SentenceFacts): string {
  const { contenders, comparisons, measures, units, certification, liveness } = evaluation;
  if (liveness.floor === null)
    return `verdict: ${policy} never decides, because training found no confidence floor. Nothing was compared.`;
  if (contenders[0]!.basis === "refused")
    return `verdict: this log cannot say how good ${policy} is. Do not release it on this evidence.`;
  const baseline = BASELINES.find(([name]) => comparisons.some(({ against }) => against === name));
  if (baseline === undefined)
    return `verdict: this log cannot compare ${policy} with any other policy. Do not release it on this evidence.`;
  const [against, called] = baseline;
  const asked = [qualityOf(measures), ...measures.filter((each) => each === "cost")];
  const compared = asked.flatMap((measure) =>
    comparisons.filter((each) => each.against === against && each.measure === measure),
  );
  const words = compared.map((each) => standing(each, measures));
  const figures = compared.map((each) => figuresOf(each, evaluation));
  const trust = certification === "certified" ? "" : " NOT CERTIFIED: do not release it on this evidence.";
  const whole = asked[0] === "reward" ? ` ${WHOLE_REWARD}` : "";
  return `verdict: compared with ${called}, ${policy} shows ${words.join(" and ")}: ${figures.join("; ")}.${whole}${refusedText(evaluation)} Judged by ${plural(units, unit)} that it has not seen.${trust}`;
}

/** Explains why another baseline replaces the table, if the table cannot be judged. */
function refusedText({ contenders }: Evaluation): string {
  const refused = contenders.find(({ name, basis }) => name === "static" && basis === "refused");
  if (refused === undefined) return "";
  const why = joinFaults(refused.reasons);
  const alike = contenders.filter(({ basis, reasons }) => basis === "refused" && joinFaults(reasons) === why);
  const names = BASELINES.filter(([name]) => alike.some((each) => each.name === name)).map(
    ([, called]) => called,
  );
  return ` The log cannot judge ${names.join(" and ")}: ${why}`;
}

export const WHOLE_REWARD = "Quality is the whole reward here, which has no term for cost or latency.";

/** Name of a measure in the flags of `evaluate` and `gate`: a reward without terms is the quality. */
export function measureName(measure: string, measures: readonly string[] = [measure]): string {
  return measure === "reward" && !measures.includes("quality") ? "quality" : measure;
}

type ComparedMeasure = Evaluation["comparisons"][number];

export function standing(
  { measure, says }: Pick<ComparedMeasure, "measure" | "says">,
  measures: readonly Measure[],
): string {
  const name = measureName(measure, measures);
  if (says === "no difference shown") return `no clear difference in ${name}`;
  return `a ${(says === "better") === isBurden(measure) ? "lower" : "higher"} ${name}`;
}

function figuresOf(
  { against, measure, difference }: ComparedMeasure,
  { contenders, measures, level }: Evaluation,
): string {
  const pointOf = (name: string | undefined) =>
    contenders.find((each, i) => (name === undefined ? i === 0 : each.name === name))?.values[measure]
      ?.estimate.value;
  const [mine, theirs] = [pointOf(undefined), pointOf(against)];
  return figuresText(measure, { mine, theirs, difference, level, measures });
}

/** Makes `quality 0.81 instead of 0.74 (+0.07, 95 % interval +0.02 to +0.12)`. An unbiased estimate may lie outside the
 *  range of its quantity. It is not clipped here, because the two figures must differ by the given difference. */
export function figuresText(
  measure: Measure,
  found: {
    mine: number | undefined;
    theirs: number | undefined;
    difference: ComparedMeasure["difference"];
    level: number;
    measures: readonly Measure[];
  },
): string {
  const { mine, theirs, difference, level, measures } = found;
  const [interval] = difference.intervals;
  const show = (value: number | undefined) => (value === undefined ? "unknown" : figure(value));
  const band =
    interval === undefined
      ? ""
      : `, ${figure(100 * level)} % interval ${signed(interval.low)} to ${signed(interval.high)}`;
  return `${measureName(measure, measures)} ${show(mine)} instead of ${show(theirs)} (${signed(difference.estimate.value)}${band})`;
}

/** Differences of sums closer to 0 are rounding. */
const ROUNDING = 1e-9;
const figure = (value: number) => (Math.abs(value) < ROUNDING ? "0" : String(Number(value.toPrecision(3))));
const signed = (value: number) => `${value < 0 ? "" : "+"}${figure(value)}`;
