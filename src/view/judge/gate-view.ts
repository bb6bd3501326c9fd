/** Renders a gate's verdict for a terminal. */
import type { EarlierGates, PolicyEvaluation } from "../../book/judge/index.ts";
import type { GateVerdict, Sealed } from "../../contract/index.ts";
import { enoughUnits, judgeShareOf } from "../../judge/ope/index.ts";
import { measureName, WHOLE_REWARD } from "../data/verdict-sentence.ts";
import { plural, sayOnce, short, table, thousands } from "../format.ts";
import { reasonText } from "./refusal-text.ts";

export function renderVerdict(
  { record, digest }: Sealed<GateVerdict>,
  { sealed, changed, earlier, ...judged }: VerdictFacts,
): string {
  const { data, rule, baseline, candidates, outcome, passed } = record;
  const against = baselineName(baseline);
  const passedAt = candidates.findIndex(({ revision }) => revision.digest === passed?.digest);
  const found = candidates.flatMap((each) =>
    each.checks.map((check) => ({ id: each.revision.id, ...check })),
  );
  const isWhole = rule.total === undefined && found.some(({ measure }) => measure === "reward");
  const checks = isWhole ? found.map((each) => ({ ...each, measure: measureName(each.measure) })) : found;
  return [
    judgedText({ ...judged, units: data.units }),
    ...(rule.total === undefined ? [] : [totalText(rule.total)]),
    ...costLine(judged),
    ...(isWhole ? [WHOLE_REWARD] : []),
    `against ${against}, ${rule.method}, alpha ${rule.alpha}${rule.tried === 1 ? "" : ` over ${plural(rule.tried, "policy")} (${figure(rule.perCandidate)} each)`}`,
    ...(rule.discount === undefined
      ? []
      : [`whole chains: values are returns of an episode, discounted by ${rule.discount}`]),
    ...candidates.map(
      ({ revision, router, live, support }, i) =>
        `${revision.id}: floor ${router.floor ?? "none"}, decides ${figure(100 * live)} % of rows, ${changeText(changed[i]!)}; effective sample size ${figure(support.effectiveSize)}, largest importance weight ${figure(support.largestWeight)}, mean ${figure(support.meanWeight)} (expected 1)`,
    ),
    ...(checks.length === 0 ? [] : [checkTable(checks)]),
    // If no candidate passes, the error that follows gives the reasons.
    ...(outcome === "refuse"
      ? []
      : candidates.flatMap(({ revision, reasons }) =>
          reasons.map(
            (reason) => `  ${revision.id}: ${reasonText(isWhole ? renamed(reason) : reason, against)}`,
          ),
        )),
    ...repeatText(earlier, record, { sealed, rows: judged.rows }),
    outcome === "pass"
      ? `PASS: ${passed!.id}, which ${changeText(changed[passedAt]!)} of ${against}${overOthers(record)}`
      : "REFUSE",
    `verdict ${short(digest)}, ${sealed ? "sealed in the book" : "not sealed"}`,
    "",
  ].join("\n");
}

/** Why this policy of several that pass: one gate passes one policy. */
function overOthers({ candidates, passed }: GateVerdict): string {
  const others = candidates.filter(
    (each) => each.outcome === "pass" && each.revision.digest !== passed?.digest,
  );
  if (others.length === 0) return "";
  const [{ measure } = { measure: "quality" }] = others[0]!.checks;
  const [ids, verb] = [
    others.map(({ revision }) => revision.id).join(", "),
    others.length === 1 ? "clears" : "clear",
  ];
  return `. ${ids} ${verb} too; ${passed!.id} is taken because its bound of ${measureName(measure)} is the best`;
}

interface VerdictFacts extends JudgedFacts {
  readonly sealed: boolean;
  /** Share of decisions that differ from the baseline's, for each candidate. */
  readonly changed: readonly number[];
  /** Earlier gates on these rows. */
  readonly earlier: EarlierGates;
}

type JudgedFacts = Pick<
  PolicyEvaluation["judged"],
  "rows" | "rule" | "leftOut" | "leftOutUnlabelled" | "unlabelled" | "callCosts" | "declaredPrices"
>;

/** Describes the rows that judge, and the excluded ones with the reasons. A row without a reward counts as such in
 *  every split, as in the counts of `train`. */
export function judgedText({
  rows,
  rule,
  leftOut,
  leftOutUnlabelled: without,
  unlabelled,
  units,
}: JudgedFacts & { units: number }): string {
  const { train, calibration } = leftOut;
  const allWithout = unlabelled + without.train + without.calibration;
  const left = [
    `${thousands(train - without.train)} of the train split`,
    ...(calibration === 0 ? [] : [`${thousands(calibration - without.calibration)} that set its floor`]),
    ...(allWithout === 0 ? [] : [`${thousands(allWithout)} without a reward`]),
  ];
  // The split rule tells which rows would have calibrated a floor.
  const uncalibrated = calibration === 0 && train > 0 && rule.shares[1] > 0;
  const note = uncalibrated
    ? ": the judge split, and the calibration split, because no floor was set on it"
    : "";
  return `judged by ${plural(rows.length, "row")} of ${plural(units, rule.unit)}${note}; left out: ${left.join(", ")}`;
}

function changeText(share: number): string {
  return share < ROUNDING ? "changes no decision" : `changes ${figure(100 * share)} % of the decisions`;
}

/** Values closer to 0 are rounding. */
const ROUNDING = 1e-9;

/** The option for the next gate on these rows, if it judges as many policies as this one. The book knows no dry run; a
 *  user who states more policies than the book knows has counted them. */
export function nextTried(
  { rule: { tried }, candidates: { length } }: GateVerdict,
  { policies, sealed }: EarlierGates & { sealed: boolean },
): string {
  const known = policies + length;
  const parts =
    tried > known
      ? `${tried} counted so far, ${length} in the next gate`
      : [
          ...(sealed
            ? [`${known} in sealed verdicts`]
            : [`${policies} in sealed verdicts, ${length} in this dry run`]),
          `${length} in the next gate; add the policies of earlier dry runs`,
        ].join(", ");
  return `--candidates-tried ${Math.max(tried, known) + length} (${parts})`;
}

/** Alpha holds for a single look, unless the bound holds for any number of looks. */
function repeatText(
  earlier: EarlierGates,
  record: GateVerdict,
  { sealed, rows }: Pick<VerdictFacts, "sealed" | "rows">,
): string[] {
  const { rule, candidates, outcome } = record;
  const { method, tried, discount } = rule;
  const all = candidates.length + earlier.policies;
  // A user who gives at least this --candidates-tried has counted the earlier gates.
  if (earlier.gates === 0 || method === "confidence-sequence" || tried >= all) return [];
  const ranges = rangesToState(rule, rows).map((each) => `--${each}-range=LOW..HIGH`);
  const stated = ranges.length === 0 ? "" : ` with ${ranges.join(" and ")}`;
  // Only student-t judges chains of decisions.
  const sequence = discount === undefined ? `, or use --method confidence-sequence${stated}` : "";
  const counted = `${sealed ? "these rows have now judged" : "with this dry run, these rows have judged"} at least ${plural(all, "policy")} (a policy judged again counts again), but the bound allows for ${tried}`;
  const next = `${nextTried(record, { ...earlier, sealed })}${sequence}`;
  return [
    outcome === "pass"
      ? `WARNING: ${counted}, so this PASS is weaker than alpha says.${sealed ? " The verdict stands." : ""} For a correct bound, run the gate again with ${next}`
      : `WARNING: ${counted}. Run the next gate on them with ${next}`,
  ];
}

/** Ranges without which `--method confidence-sequence` would refuse these rows. Quality has a default range, 0 to 1. */
function rangesToState({ ranges, epsilonCost, total }: GateVerdict["rule"], rows: VerdictFacts["rows"]) {
  const isOutside = rows.some(({ measures: { quality, reward } }) => {
    const value = quality ?? reward ?? 0;
    return value < 0 || value > 1;
  });
  const needed = [
    ...(total !== undefined || isOutside ? ["quality"] : []),
    ...(epsilonCost === null ? [] : ["cost"]),
  ];
  return needed.filter((each) => ranges?.[each] === undefined);
}

export function costLine({
  callCosts,
  declaredPrices,
}: Pick<JudgedFacts, "callCosts" | "declaredPrices">): string[] {
  if (!callCosts && !declaredPrices) return [];
  const declared = "the declared price of the choice";
  const recorded = `that of the recorded calls${declaredPrices ? `, where none is recorded ${declared}` : ""}`;
  return [`cost is ${callCosts ? recorded : declared}, in US dollars`];
}

/** Explains why no candidate passes, one line per reason. A reason that several candidates share is printed once. */
export function refusalText({ candidates, baseline, data, split, rule }: GateVerdict): string {
  const sharedBy = new Map<string, GateVerdict["candidates"]>();
  for (const candidate of candidates)
    for (const reason of candidate.reasons.map((each) => (rule.total === undefined ? renamed(each) : each)))
      sharedBy.set(reason, [...(sharedBy.get(reason) ?? []), candidate]);
  const once = sayOnce([...sharedBy.keys()]);
  const told = [...sharedBy.values()].map((alike, i) => {
    const ids = alike.map(({ revision }) => revision.id).join(", ");
    return `${ids}: ${reasonText(once[i]!, baselineName(baseline))}`;
  });
  const units = Math.min(...candidates.map(({ checks }) => unitsToProve(checks, data.units)));
  const share = judgeShareOf(split.shares, { isCalibrated: data.leftOut.calibration > 0 });
  const enough = enoughUnits({ judging: units, judgeShare: share, unit: split.unit });
  const missed = new Set(
    candidates.flatMap(({ checks }) => checks.filter(({ clears }) => !clears).map(({ measure }) => measure)),
  );
  // The advice has no figure, because a margin chosen after the estimate tests nothing.
  const margins = [...missed].map((measure) =>
    measure === "cost"
      ? { loss: "a higher cost", option: "--epsilon-cost" }
      : { loss: "a loss", option: "--epsilon-quality" },
  );
  const listed = (of: "loss" | "option") => margins.map((each) => each[of]).join(" and ");
  const more = units > MOST_UNITS ? "" : `Record about ${enough} in total, and judge again. `;
  const margin = `If you decided before you saw this result to accept ${listed("loss")}, judge again with ${listed("option")}. ${MARGIN_FIRST}`;
  const lines = missed.size === 0 ? told : [...told, `${more}${margin}`];
  return lines.length === 1 ? ` ${lines[0]}` : lines.map((line) => `\n  ${line}`).join("");
}

const MARGIN_FIRST = "A margin chosen to fit this result tests nothing.";

function baselineName({ kind, revision }: GateVerdict["baseline"]): string {
  return revision?.id ?? (kind === "static" ? "the static table" : "the log's policy");
}

/** Uses the name of the measure in the table of the checks; the record has another name. */
const renamed = (reason: string) => reason.replace(/^reward:/, `${measureName("reward")}:`);

/** No advice is given for more units than this. */
const MOST_UNITS = 1e6;

/** Number of units with which every check would clear if the differences stayed: a bound narrows with the square root
 *  of the number. Infinite if a difference itself is outside its margin, or if there was no check. */
function unitsToProve(checks: GateVerdict["candidates"][number]["checks"], units: number): number {
  const missed = checks.filter(({ clears }) => !clears);
  const factors = missed.map(({ difference, bound, epsilon, measure }) => {
    const room = measure === "cost" ? epsilon - difference : epsilon + difference;
    return bound === null || room <= 0 ? Number.POSITIVE_INFINITY : ((difference - bound) / room) ** 2;
  });
  return missed.length === 0 ? Number.POSITIVE_INFINITY : units * Math.max(...factors);
}

interface ShownCheck extends Omit<GateVerdict["candidates"][number]["checks"][number], "measure"> {
  readonly id: string;
  readonly measure: string;
}

function checkTable(checks: readonly ShownCheck[]): string {
  return table(checks, [
    { title: "POLICY", cell: (each) => each.id },
    { title: "MEASURE", cell: (each) => each.measure },
    { title: "VALUE", align: "right", cell: (each) => figure(each.candidate) },
    { title: "BASELINE", align: "right", cell: (each) => figure(each.baseline) },
    { title: "DIFFERENCE", align: "right", cell: (each) => figure(each.difference) },
    { title: "BOUND", align: "right", cell: (each) => (each.bound === null ? "∞" : figure(each.bound)) },
    { title: "REQUIRED", cell: requiredText },
    { title: "", cell: (each) => (each.clears ? "clears" : "does not clear") },
  ]).trimEnd();
}

/** The side of the margin where BOUND must be: a cost may rise by the margin, every other measure may fall by it. */
function requiredText({ measure, epsilon }: ShownCheck): string {
  return measure === "cost" ? `at most ${figure(epsilon)}` : `at least ${figure(0 - epsilon)}`;
}

function totalText({ costWeight }: NonNullable<GateVerdict["rule"]["total"]>): string {
  return costWeight === undefined
    ? "reward is the total as it was logged, with all its terms"
    : `reward is quality - ${figure(costWeight)} * cost`;
}

const figure = (value: number) => String(Number(value.toPrecision(4)));
