/** Implements `rollbook evaluate`: tests if the learned policy is better, and if the log supports the answer. */
import { type Command, Option } from "commander";
import { joinFaults, RollbookError } from "../../base/index.ts";
import { wrongUsage } from "../../book/decisions/index.ts";
import { evaluateCheckpoint, evaluateKnownTarget } from "../../book/judge/index.ts";
import { readAnySpec } from "../../book/train/index.ts";
import { smallLogRemedy } from "../../judge/ope/index.ts";
import { SPLIT_UNITS, type SplitUnit } from "../../learn/index.ts";
import { jsonLine, plural } from "../../view/format.ts";
import {
  evaluationJson,
  renderEvaluation,
  renderTarget,
  targetJson,
} from "../../view/judge/evaluation-view.ts";
import { renderAdmitted } from "../../view/ledger-view.ts";
import { addCommand } from "../command.ts";
import type { Io } from "../io.ts";
import { embeddingPlace } from "../options/embedding-options.ts";
import {
  addJudgeOptions,
  explorationNote,
  JUDGE_DISCOUNT,
  type JudgeFlags,
  judgedRouter,
  tableExample,
} from "../options/judge-options.ts";
import { share } from "../options/numbers.ts";
import { addRowOptions, requestOf, withDecisions } from "../options/row-options.ts";

interface EvaluateFlags extends JudgeFlags {
  checkpoint?: string;
  /** Alias of `checkpoint`. */
  candidate?: string;
  targetProbabilities?: string;
  unit?: SplitUnit;
  estimatePropensities?: true;
  discount?: number;
  verbose?: true;
}

/** Below this number of groups, intervals by bootstrap or Student-t are too narrow. */
const FEW_UNITS = 30;

export function addEvaluate(program: Command, io: Io): void {
  const command = addCommand(program, "evaluate", {
    summary: "compare a learned policy with its baselines on rows it has not seen",
    description: `Compare a learned policy with its baselines on the rows that \`train\` held out: the judge split, and also
the calibration split if no floor was set with --floor-risk. The baselines are the static table fitted on the same
training rows, the best single candidate, the behaviour policy and a uniform choice; where every outcome is known, also an
oracle. Policies choose as the router would, with its table, floor and exploration. The output ends with one sentence:
better or not, by how much, how sure. --verbose prints the figures behind it.

If the log does not support the comparison, or training found no confidence floor, the command refuses (exit 1). A log needs an effective sample size of 50,
unless every outcome is known. Record about 1000 different tasks to train and judge a policy.

${tableExample()}`,
    examples: [
      "rollbook evaluate --data decisions.jsonl --checkpoint policies/learned",
      "rollbook evaluate --data decisions.jsonl --checkpoint policies/learned --verbose",
      "rollbook evaluate --data decisions.jsonl --target-probabilities shadow.csv",
    ],
  })
    .option(
      "--checkpoint <dir>",
      "the policy, a folder that `train` wrote; `run status` names those of a loop",
    )
    .addOption(new Option("--candidate <dir>").hideHelp().conflicts("checkpoint"))
    .option(
      "--target-probabilities <column|file>",
      "judge a policy by its probabilities instead of a checkpoint. Give one of: (1) the name of a number in state.fields of every row, the probability that the judged policy gives to the logged choice; (2) the name of a number in features of every candidate, its probability under the judged policy; (3) a file with decision_id. CSV: also one column per candidate, or the column probability (as in 1). JSON Lines: also an object probabilities, with one number per candidate, or the number probability",
    )
    .addOption(
      new Option(
        "--unit <unit>",
        "with --target-probabilities: rows with the same key count as one (default: task)",
      ).choices(SPLIT_UNITS),
    )
    .option(
      "--verbose",
      "print diagnostics, estimators, contenders, comparisons and the frontier before the verdict",
    )
    .option(
      "--estimate-propensities",
      "estimate missing propensities from the log; the result is then not certified",
    )
    .optionsGroup("Bounds:")
    .option("--discount <g>", JUDGE_DISCOUNT, share);
  const judged = addJudgeOptions(command, { defaultRange: "the observed one" });
  addRowOptions(judged, { data: true, families: "trained" }).action((flags: EvaluateFlags) => run(io, flags));
}

async function run(io: Io, flags: EvaluateFlags): Promise<void> {
  const {
    checkpoint = flags.candidate,
    targetProbabilities: target,
    estimatePropensities,
    qualityRange,
    seed,
    discount,
  } = flags;
  if (checkpoint !== undefined && target !== undefined)
    throw wrongUsage("--checkpoint and --target-probabilities both name the policy. Remove one of them");
  if (checkpoint === undefined && target === undefined)
    throw wrongUsage("no policy is named. Name it with --checkpoint or with --target-probabilities");
  if (target !== undefined) return runTarget(io, flags, target);
  if (flags.unit !== undefined)
    throw wrongUsage(
      `--unit has no effect with --checkpoint: a checkpoint is judged by the unit it was trained with. Train it with \`rollbook train … --unit ${flags.unit}\``,
    );
  const router = await judgedRouter(io, flags);
  const found = await withDecisions(io, flags, (source) =>
    evaluateCheckpoint(source, {
      ...requestOf(flags),
      ...{ checkpoint: checkpoint!, estimatePropensities, qualityRange, seed, discount },
      ...router,
      embeddings: embeddingPlace(io, flags),
      spec: readAnySpec(flags),
    }),
  );
  const { evaluation, admitted, refusal } = found;
  if (admitted !== undefined && !flags.json) io.err(renderAdmitted(admitted));
  const note = await explorationNote(io, flags);
  if (note !== undefined) io.err(`note: ${note}\n`);
  io.out(
    flags.json
      ? jsonLine(evaluationJson(evaluation, found))
      : renderEvaluation(evaluation, found, { verbose: flags.verbose === true }),
  );
  const { liveness } = evaluation;
  // A refusal already mentions a missing floor, and a small log.
  if (liveness.warning !== undefined && liveness.floor !== null) io.err(`warning: ${liveness.warning}\n`);
  if (evaluation.units < FEW_UNITS && refusal === undefined)
    io.err(
      `warning: ${plural(evaluation.units, "unit")} judge, and intervals over so few are rough. ${smallLogRemedy({ unit: found.judged.rule.unit, counted: { rows: found.judged.rows.length, units: evaluation.units } })}.\n`,
    );
  if (refusal !== undefined) throw refusal;
}

const BY_DECISION =
  "rollouts have several decisions: values are rewards of single decisions, on the states that the log reached, not returns\n";

async function runTarget(io: Io, flags: EvaluateFlags, target: string): Promise<void> {
  const { unit = "task", qualityRange, seed, discount } = flags;
  if (discount !== undefined)
    throw wrongUsage(
      "--target-probabilities judges each decision by its own reward: whole rollouts need --checkpoint. Leave --discount out",
    );
  const report = await withDecisions(io, flags, (source) =>
    evaluateKnownTarget(source, { ...requestOf(flags), target, unit, qualityRange, seed }),
  );
  io.out(
    flags.json
      ? jsonLine(targetJson(report))
      : `${report.chained ? BY_DECISION : ""}${renderTarget(report, { unit, verbose: flags.verbose === true })}`,
  );
  const first = report.panels[report.measures[0]!];
  if (first?.kind === "refused")
    throw new RollbookError(
      "refused",
      { reasons: first.reasons },
      `the log cannot say how good the policy is: ${joinFaults(first.reasons)}`,
    );
}
