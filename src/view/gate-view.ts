/** How a gate's verdict looks on a terminal. */
import type { GateVerdict, Sealed } from "../contract/index.ts";
import { plural, short, table, thousands } from "./format.ts";

export function renderVerdict(
  { record, digest }: Sealed<GateVerdict>,
  { sealed, unit }: { sealed: boolean; unit: string },
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
    `against ${against}, ${rule.method}, alpha ${rule.alpha} over ${plural(rule.tried, "candidate")} (${rule.correction}: ${figure(rule.perCandidate)} each)`,
    ...(rule.discount === undefined
      ? []
      : [`whole chains: values are returns of an episode, discounted by ${rule.discount}`]),
    ...candidates.map(
      ({ revision, router, live, support }) =>
        `${revision.id}: floor ${router.floor ?? "none"}, decides ${figure(100 * live)} % of rows; effective sample size ${figure(support.effectiveSize)}, largest weight ${figure(support.largestWeight)}, mean weight ${figure(support.meanWeight)}`,
    ),
    table(checks, [
      { title: "CANDIDATE", cell: (each) => each.id },
      { title: "MEASURE", cell: (each) => each.measure },
      { title: "VALUE", align: "right", cell: (each) => figure(each.candidate) },
      { title: "BASELINE", align: "right", cell: (each) => figure(each.baseline) },
      { title: "DIFFERENCE", align: "right", cell: (each) => figure(each.difference) },
      { title: "BOUND", align: "right", cell: (each) => (each.bound === null ? "∞" : figure(each.bound)) },
      { title: "MARGIN", align: "right", cell: (each) => figure(each.epsilon) },
      { title: "", cell: (each) => (each.clears ? "clears" : "does not clear") },
    ]).trimEnd(),
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

function totalText({ costWeight }: NonNullable<GateVerdict["rule"]["total"]>): string {
  return costWeight === undefined
    ? "reward is the total as it was logged, with all its terms"
    : `reward is quality - ${figure(costWeight)} * cost`;
}

const figure = (value: number) => String(Number(value.toPrecision(4)));
