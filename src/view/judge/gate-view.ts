/** How a gate's verdict looks on a terminal. */
import type { GateVerdict, Sealed } from "../../contract/index.ts";
import { judgeShareOf, smallLogRemedy } from "../../judge/ope/index.ts";
import { plural, short, table, thousands } from "../format.ts";

export function renderVerdict(
  { record, digest }: Sealed<GateVerdict>,
  { sealed, unit, callCosts }: { sealed: boolean; unit: string; callCosts: boolean },
): string {
  const { data, rule, baseline, candidates, outcome, passed } = record;
  const against =
    baseline.revision?.id ?? (baseline.kind === "static" ? "the static table" : "the log's policy");
  const checks = candidates.flatMap((each) =>
    each.checks.map((check) => ({ id: each.revision.id, ...check })),
  );
  return [
    `${plural(data.rows, "row")} of ${plural(data.units, unit)} judge; ${thousands(data.leftOut.train)} train and ${thousands(data.leftOut.calibration)} calibration rows left out, ${thousands(data.unlabelled)} unlabelled`,
    ...(rule.total === undefined ? [] : [totalText(rule.total)]),
    ...(callCosts ? [CALL_COSTS] : []),
    `against ${against}, ${rule.method}, alpha ${rule.alpha} over ${plural(rule.tried, "candidate")} (${rule.correction}: ${figure(rule.perCandidate)} each)`,
    ...(rule.discount === undefined
      ? []
      : [`whole chains: values are returns of an episode, discounted by ${rule.discount}`]),
    ...candidates.map(
      ({ revision, router, live, support }) =>
        `${revision.id}: floor ${router.floor ?? "none"}, decides ${figure(100 * live)} % of rows; effective sample size ${figure(support.effectiveSize)}, largest weight ${figure(support.largestWeight)}, mean weight ${figure(support.meanWeight)}`,
    ),
    ...(checks.length === 0 ? [] : [checkTable(checks)]),
    // Where none passes, the reasons stand in the error that follows.
    ...(outcome === "refuse"
      ? []
      : candidates.flatMap(({ revision, reasons }) =>
          reasons.map((reason) => `  ${revision.id}: ${reason}`),
        )),
    outcome === "pass" ? `PASS: ${passed!.id}` : "REFUSE",
    `verdict ${short(digest)}${sealed ? ", sealed in the book" : ""}`,
    "",
  ].join("\n");
}

export const CALL_COSTS = "cost is that of the recorded calls, in US dollars";

/** Why no candidate passes. A reason that several share is said once. */
export function refusalText({ candidates, data, split }: GateVerdict): string {
  const sharedBy = new Map<string, string[]>();
  for (const { revision, reasons } of candidates)
    for (const reason of reasons) sharedBy.set(reason, [...(sharedBy.get(reason) ?? []), revision.id]);
  const told = [...sharedBy].map(([reason, ids]) => `${ids.join(", ")}: ${reason.replace(/\.$/, "")}`);
  const units = Math.min(...candidates.map(({ checks }) => unitsToProve(checks, data.units)));
  const share = judgeShareOf(split.shares, { isCalibrated: data.leftOut.calibration > 0 });
  const unproven = `The difference is within its margin, but ${plural(data.units, "unit")} are too few to prove it. ${smallLogRemedy({ judging: units, judgeShare: share, unit: split.unit })}, or allow a larger margin.`;
  return `${told.join("; ")}.${units > MOST_UNITS ? "" : ` ${unproven}`}`;
}

/** More units than this are no advice. */
const MOST_UNITS = 1e6;

/** Units with which every check would clear, if the differences stayed: a bound narrows with the square root of their number.
 *  Infinite where a difference itself is outside its margin, or nothing was checked. */
function unitsToProve(checks: GateVerdict["candidates"][number]["checks"], units: number): number {
  const missed = checks.filter(({ clears }) => !clears);
  const factors = missed.map(({ difference, bound, epsilon, measure }) => {
    const room = measure === "cost" ? epsilon - difference : epsilon + difference;
    return bound === null || room <= 0 ? Number.POSITIVE_INFINITY : ((difference - bound) / room) ** 2;
  });
  return missed.length === 0 ? Number.POSITIVE_INFINITY : units * Math.max(...factors);
}

type ShownCheck = GateVerdict["candidates"][number]["checks"][number] & { readonly id: string };

function checkTable(checks: readonly ShownCheck[]): string {
  return table(checks, [
    { title: "CANDIDATE", cell: (each) => each.id },
    { title: "MEASURE", cell: (each) => each.measure },
    { title: "VALUE", align: "right", cell: (each) => figure(each.candidate) },
    { title: "BASELINE", align: "right", cell: (each) => figure(each.baseline) },
    { title: "DIFFERENCE", align: "right", cell: (each) => figure(each.difference) },
    { title: "BOUND", align: "right", cell: (each) => (each.bound === null ? "∞" : figure(each.bound)) },
    { title: "MARGIN", align: "right", cell: (each) => figure(each.epsilon) },
    { title: "", cell: (each) => (each.clears ? "clears" : "does not clear") },
  ]).trimEnd();
}

function totalText({ costWeight }: NonNullable<GateVerdict["rule"]["total"]>): string {
  return costWeight === undefined
    ? "reward is the total as it was logged, with all its terms"
    : `reward is quality - ${figure(costWeight)} * cost`;
}

const figure = (value: number) => String(Number(value.toPrecision(4)));
