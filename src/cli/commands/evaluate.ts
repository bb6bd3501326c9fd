/** `rollbook evaluate`: is the learned policy better, and can the log say so? */
import type { Command } from "commander";
import { RollbookError, rngFrom } from "../../base/index.ts";
import { qualityOf } from "../../judge/evaluate/judged-row.ts";
import { type Evaluation, evaluatePolicy, realisedRisk } from "../../judge/index.ts";
import { addCommand } from "../command.ts";
import { loadRows } from "../../book/decisions/load-rows.ts";
import { addRowOptions, toDataFlags } from "../options/row-options.ts";
import type { Io } from "../io.ts";
import { followPromise } from "../../book/judge/calibrate.ts";
import { addJudgeOptions, type JudgeFlags } from "../options/judge-options.ts";
import { type JudgeRows, judgeRowsOf } from "../../book/judge/judge-rows.ts";
import { type Fielded, fieldOf, loadPolicy } from "../../book/judge/load-policy.ts";
import { jsonLine, plural } from "../../view/format.ts";
import { evaluationJson, type Kept, renderEvaluation } from "../../view/evaluation-view.ts";

interface EvaluateFlags extends JudgeFlags {
  checkpoint: string;
  estimatePropensities?: true;
}

export function addEvaluate(program: Command, io: Io): void {
  const command = addCommand(program, "evaluate", {
    summary: "compare a learned policy with its rivals on rows it has not seen",
    description: `Compare a learned policy with the static table fitted on the same training rows, the best single candidate, the
policy behind the log, chance and, where every outcome is known, an oracle: on the judge split only, by the path the router
takes. Prints what the log can carry before any number, and refuses (exit 1) where that is too little.`,
    examples: ["rollbook evaluate --data decisions.jsonl --checkpoint policies/learned"],
  })
    .requiredOption("--checkpoint <dir>", "the policy, as `train` wrote it")
    .option("--estimate-propensities", "for logs without propensities: guess them, and certify nothing");
  addRowOptions(addJudgeOptions(command), { data: true }).action((flags: EvaluateFlags) => run(io, flags));
}

async function run(io: Io, flags: EvaluateFlags): Promise<void> {
  const loaded = loadPolicy(flags.checkpoint, flags);
  const rows = await loadRows(io, toDataFlags(flags));
  const judged = judgeRowsOf(rows, [loaded]);
  const field = fieldOf(loaded, flags);
  const followed = followPromise(rows, loaded, field) === true;
  const evaluation = evaluatePolicy(judged.rows, {
    field,
    rng: rngFrom(flags.seed),
    estimatePropensities: flags.estimatePropensities === true,
  });
  const kept = keptBy(judged, { field, refused: evaluation.contenders[0]!.basis === "refused" });
  const facts = {
    judged,
    field,
    revision: loaded.checkpoint.revision.record,
    kept: kept === undefined ? undefined : { ...kept, followed },
    range: keptRange(judged, evaluation, flags),
  };
  io.out(flags.json ? jsonLine(evaluationJson(evaluation, facts)) : renderEvaluation(evaluation, facts));
  if (evaluation.liveness.warning !== undefined) io.err(`warning: ${evaluation.liveness.warning}\n`);
  if (evaluation.units < FEW_UNITS)
    io.err(`warning: ${plural(evaluation.units, "unit")} only: intervals over so few are rough\n`);
  refuseThin(evaluation, judged);
}

/** Fewer clusters, and neither the bootstrap nor Student-t is to be taken at its word. */
const FEW_UNITS = 30;

/** What became of the promised risk on rows that neither trained nor calibrated. */
function keptBy(
  judged: JudgeRows,
  { field: { promise, policy, table }, refused }: { field: Fielded; refused: boolean },
): Omit<Kept, "followed"> | undefined {
  if (promise === undefined || policy === undefined) return undefined;
  const { floor, alpha, range, propensityFloor } = promise.record;
  if (refused) return { promise: promise.digest, alpha, floor };
  const { estimate, interval } = realisedRisk(judged.rows, { policy, table, range, propensityFloor, floor });
  return { promise: promise.digest, alpha, floor, realised: estimate.value, interval };
}

/** The stated range of quality, unless a row is outside: then nobody has stated it. */
function keptRange({ rows }: JudgeRows, { measures }: Evaluation, { qualityRange }: EvaluateFlags) {
  const quality = qualityOf(measures);
  const inside = rows.every(({ measures: { [quality]: value } }) => {
    return value !== null && value >= qualityRange.low && value <= qualityRange.high;
  });
  return inside ? qualityRange : undefined;
}

function refuseThin({ contenders, measures }: Evaluation, judged: JudgeRows): void {
  const [learned] = contenders;
  if (learned!.basis !== "refused") return;
  const verdict = learned!.panels[measures[0]!];
  const thin =
    verdict?.kind === "refused" ? verdict.faults.find(({ kind }) => kind === "thin-support") : undefined;
  throw new RollbookError(
    "refused",
    { reasons: learned!.reasons },
    `the log cannot say how good the policy is: ${learned!.reasons.join(" ")}${thin?.kind === "thin-support" ? wholeLog(thin.enough, judged) : ""}`,
  );
}

/** What that means for the whole log, of which the judge split is a part. */
function wholeLog(enough: number | null, { rule: { shares, unit } }: JudgeRows): string {
  if (enough === null || shares[2] === 0 || shares[2] === 1) return "";
  return ` The judge split is ${100 * shares[2]} % of the log: about ${Math.ceil(enough / shares[2])} ${unit}s in all.`;
}
