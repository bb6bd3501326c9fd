/** Implements `rollbook gate`: passes or refuses a policy, and seals the reasons. */
import { existsSync } from "node:fs";
import { type Command, Option } from "commander";
import { given, RollbookError } from "../../base/index.ts";
import { wrongUsage } from "../../book/decisions/index.ts";
import { type EarlierGates, earlierGates, type GateResult, gateCheckpoints } from "../../book/judge/index.ts";
import { isBook, type OpenBook } from "../../book/open/index.ts";
import { readAnySpec } from "../../book/train/index.ts";
import type { GateVerdict } from "../../contract/index.ts";
import { type GateMethod, triedFault } from "../../judge/index.ts";
import type { Range } from "../../judge/ope/index.ts";
import { notHeldText } from "../../serve/index.ts";
import { writeAtomically } from "../../store/index.ts";
import { jsonLine } from "../../view/format.ts";
import { nextTried, refusalText, renderVerdict } from "../../view/judge/gate-view.ts";
import { renderAdmitted } from "../../view/ledger-view.ts";
import { addCommand } from "../command.ts";
import type { Io } from "../io.ts";
import { embeddingPlace } from "../options/embedding-options.ts";
import {
  addJudgeOptions,
  JUDGE_DISCOUNT,
  type JudgeFlags,
  judgedRouter,
  type PromiseFlags,
  tableExample,
  toRange,
} from "../options/judge-options.ts";
import { errorLevel, nonNegative, positiveWhole, share } from "../options/numbers.ts";
import { addRowOptions, datasetFrom, requestOf } from "../options/row-options.ts";
import { bookRoot, withBook } from "../with-book.ts";

interface GateFlags extends JudgeFlags, PromiseFlags {
  checkpoint?: string[];
  /** Alias of `checkpoint`. */
  candidate?: string[];
  baseline: string;
  epsilonQuality: number;
  epsilonCost: number;
  qualityOnly?: true;
  totalReward?: true;
  costWeight?: number;
  alpha: number;
  candidatesTried?: number;
  method: GateMethod;
  costRange?: Range;
  discount?: number;
  dryRun?: true;
  out?: string;
}

const METHODS: readonly GateMethod[] = ["student-t", "empirical-bernstein", "confidence-sequence"];

export function addGate(program: Command, io: Io): void {
  const command = addCommand(program, "gate", {
    summary: "pass a policy only if rows it has not seen show that it is not worse",
    description: `Pass a policy (exit 0) only if it is not worse than the baseline on the rows that \`train\` held out,
else refuse it with reasons (exit 1). These rows are the judge split, and also the calibration split if no floor was set
with --floor-risk. Two bounds decide: the lower bound of the difference in quality must be at least
-epsilon-quality, and the upper bound of the difference in cost at most epsilon-cost. With --total-reward one
bound decides: the lower bound of the difference in total reward must be at least -epsilon-quality. Alpha is shared
among all policies tried (Bonferroni).

In a book, the verdict is sealed with everything needed to repeat it, and a PASS is the release: gateways with
\`checkpoint: released\` on this book serve the policy from then on, if it was trained from the book (without --data). A later
refusal does not withdraw a release. To serve an older policy again, set \`router.checkpoint\` in the gateway's file to its
folder; \`router.enabled: false\` serves the static table. With --dry-run nothing is sealed or released.

Use --method confidence-sequence if you run the gate repeatedly on a growing log. The other methods allow one look.
A log needs an effective sample size of 50, unless every outcome is known. Record about 1000 different tasks to train and judge a policy.

${tableExample()}`,
    examples: [
      "rollbook gate --data decisions.jsonl --checkpoint policies/learned --epsilon-quality 0.1",
      "rollbook gate --data decisions.jsonl --checkpoint policies/learned --baseline behaviour --epsilon-cost 0.2",
      "rollbook gate --data decisions.jsonl --checkpoint policies/learned --total-reward --cost-weight 0.5",
      "rollbook gate --data decisions.jsonl --checkpoint policies/learned --epsilon-quality 0.1 --dry-run",
    ],
  })
    .option(
      "--checkpoint <dir...>",
      "required: the policies to judge, each a folder that `train` wrote; `run status` names those of a loop. If several pass, the one with the best bound of quality is released",
    )
    // Name of the option in 0.1.0.
    .addOption(new Option("--candidate <dir...>").hideHelp().conflicts("checkpoint"))
    .option(
      "--baseline <which>",
      "static (the table), behaviour (the log's policy), or a checkpoint",
      "static",
    )
    .option("--dry-run", "judge only: seal no verdict, and so release nothing")
    .option("--require-trusted", "refuse unless a trusted key signed every record that is used")
    .option("--out <file>", "also write the verdict here; never overwritten")
    .optionsGroup("Margins and bounds:")
    .option(
      "--epsilon-quality <x>",
      "non-inferiority margin on quality: the loss that is still accepted, in units of the reward",
      nonNegative,
      0,
    )
    .option(
      "--epsilon-cost <x>",
      "non-inferiority margin on the cost of a decision, in units of the logged cost (US dollars if a gateway recorded the calls)",
      nonNegative,
      0,
    )
    .option("--quality-only", "do not judge cost")
    .addOption(
      new Option(
        "--total-reward",
        "judge the total reward, with all its terms, instead of quality and cost separately; --epsilon-quality is its margin",
      ).conflicts("qualityOnly"),
    )
    .option(
      "--cost-weight <w>",
      "with --total-reward: judge quality - w * cost (default: the reward as it was logged)",
      nonNegative,
    )
    .option(
      "--alpha <a>",
      "error level: chance of passing a worse policy, over all policies tried; above 0 and below 0.5",
      errorLevel,
      0.05,
    )
    .option(
      "--candidates-tried <n>",
      "policies judged on these rows in all gates and dry runs, this one included; a policy judged again counts again. The default counts only this gate: the number of --checkpoint",
      positiveWhole,
    )
    .addOption(
      new Option(
        "--method <method>",
        "method of the bound: student-t and empirical-bernstein (which needs no normality) allow one look, confidence-sequence any number. student-t estimates by DR (doubly robust), the others by IPS (importance weights alone), so their values differ",
      )
        .choices(METHODS)
        .default("student-t"),
    )
    .option(
      "--cost-range <low..high>",
      "lowest and highest possible cost of one decision, in units of the logged cost; required by --method empirical-bernstein and confidence-sequence if cost is judged (default: with student-t the observed one)",
      toRange,
    )
    .option("--discount <g>", JUDGE_DISCOUNT, share);
  const judged = addJudgeOptions(command, {
    propensityFloor: "Used by all methods except student-t",
    otherRange: ". With --total-reward, the range of the whole reward",
    defaultRange: "0..1; with --method student-t the observed one",
  });
  addRowOptions(judged, { data: true, families: "trained" }).action((flags: GateFlags) => run(io, flags));
}

async function run(io: Io, flags: GateFlags): Promise<void> {
  const count = candidatesOf(flags).length;
  if (count === 0)
    throw wrongUsage("required option '--checkpoint <dir...>' not specified: name the policies to judge");
  const fault = triedFault(flags.candidatesTried ?? count, count);
  if (fault !== undefined) throw wrongUsage(fault);
  if (flags.costWeight !== undefined && flags.totalReward !== true)
    throw wrongUsage("--cost-weight has no effect without --total-reward");
  refuseIdleCost(flags);
  if (flags.out !== undefined && existsSync(flags.out))
    throw new RollbookError(
      "exists",
      { path: flags.out },
      `${flags.out} already exists. Name another --out.`,
    );
  const found = await withKeeper(io, flags, async (keepIn) => {
    const request = await requestFrom(io, flags, keepIn);
    const result = await gateCheckpoints(datasetFrom(flags) ?? keepIn!, request);
    const { verdict, admitted } = result;
    const earlier =
      keepIn === undefined
        ? { gates: 0, policies: 0 }
        : await earlierGates(keepIn, verdict, admitted?.manifest);
    return { ...result, earlier };
  });
  const { verdict, sealed, judged, findings, admitted, changed, earlier, neverSent } = found;
  if (admitted !== undefined && !flags.json) io.err(renderAdmitted(admitted));
  for (const { severity, kind: finding, message } of findings)
    if (severity === "warn" && !(finding === "costs" && flags.qualityOnly)) io.err(`warning: ${message}\n`);
  for (const warning of neverSent) io.err(`warning: ${warning}\n`);
  if (flags.out !== undefined) writeAtomically(flags.out, verdict.bytes, `${flags.out}.part`);
  io.out(
    flags.json
      ? jsonLine({ verdict: verdict.digest, sealed, changed, earlier: earlier.gates, ...verdict.record })
      : renderVerdict(verdict, { sealed, changed, earlier, ...judged }),
  );
  printNotes(io, flags, found);
  if (verdict.record.outcome === "refuse") throw refusal(verdict.record);
}

/** Refuses options for a bound on cost if cost is not judged separately. */
function refuseIdleCost({ qualityOnly, totalReward, epsilonCost, costRange }: GateFlags): void {
  const without = qualityOnly ? "--quality-only" : totalReward ? "--total-reward" : undefined;
  if (without !== undefined && epsilonCost !== 0)
    throw wrongUsage(`--epsilon-cost has no effect with ${without}. Remove one of them`);
  if (without !== undefined && costRange !== undefined)
    throw wrongUsage(`--cost-range has no effect with ${without}. Remove one of them`);
}

/** Notes on a verdict, printed after it. */
function printNotes(io: Io, flags: GateFlags, found: GateResult & { earlier: EarlierGates }): void {
  const { verdict, sealed, released, unrecorded, earlier } = found;
  const { passed } = verdict.record;
  const isNotHeld = sealed && passed !== undefined && !released;
  if (isNotHeld) io.err(`warning: ${notHeldText({ verdict: verdict.digest, id: passed.id })}\n`);
  for (const { id } of unrecorded.filter((each) => !isNotHeld || each.id !== passed.id))
    io.err(
      `warning: the book has no record of ${id}, so \`verify\` cannot follow the verdict to its training. It can if the policy is trained from the book (without --data)\n`,
    );
  if (flags.dryRun === true)
    io.err(`note: --dry-run seals no verdict: nothing is released.${countText(verdict.record, earlier)}\n`);
  else if (!sealed && flags.out === undefined)
    io.err(
      "note: there is no book, so the verdict is only printed. To keep it, add --book DIR or --out FILE\n",
    );
  if (released)
    io.err(
      `note: gateways on this book with \`checkpoint: released\` and the judged settings now serve ${passed!.id}. To judge without a release, use --dry-run\n`,
    );
  if (flags.router === undefined && (sealed || flags.out !== undefined))
    for (const line of servedAsJudged(verdict.record, flags)) io.err(`note: ${line}\n`);
}

/** A confidence sequence holds for any number of looks. */
function countText(verdict: GateVerdict, earlier: EarlierGates): string {
  if (verdict.rule.method === "confidence-sequence") return "";
  return ` The book does not count this dry run. For the next gate on these rows, use ${nextTried(verdict, { ...earlier, sealed: false })}`;
}

function candidatesOf({ candidate, checkpoint }: GateFlags): string[] {
  return checkpoint ?? candidate ?? [];
}

/** Settings that a passing verdict releases. A router takes from the verdict what its file leaves out, but the table from
 *  the training; a router with other settings does not serve the policy. */
function servedAsJudged({ candidates, passed }: GateVerdict, { table }: GateFlags): string[] {
  const judged = candidates.find(({ revision }) => revision.digest === passed?.digest);
  if (judged === undefined) return [];
  const { floor, exploration } = judged.router;
  const { id } = judged.revision;
  const [used, unset] =
    table === undefined
      ? ["the table of the training", "sets none of these"]
      : [`the table ${table}`, "sets this table and none of the others"];
  return [
    `this PASS is for exploration ${exploration}, floor ${floor}, ${used} and no constraints. A gateway whose file ${unset} serves ${id} with these values. A gateway whose file sets another value does not serve ${id}: judge it again with --router FILE`,
    ...(exploration > 0
      ? []
      : [
          "with exploration 0, the traffic of this router cannot judge the next policy. To let it explore, judge with --exploration 0.02",
        ]),
  ];
}

/** Seals the verdict in the book if there is one, also for rows of a file or a replay store. */
async function withKeeper<T>(
  io: Io,
  flags: GateFlags,
  work: (book: OpenBook | undefined) => Promise<T>,
): Promise<T> {
  if (datasetFrom(flags) !== undefined && !isBook(bookRoot(io, flags))) return work(undefined);
  return withBook(io, { ...flags, mode: flags.dryRun === true ? "read" : "write" }, work);
}

async function requestFrom(io: Io, flags: GateFlags, keepIn: OpenBook | undefined) {
  const { baseline, epsilonQuality, alpha, method, propensityFloor, qualityRange, costRange, discount } =
    flags;
  return {
    ...requestOf(flags),
    ...{ baseline, epsilonQuality, alpha, method, propensityFloor, qualityRange, costRange, discount },
    ...(await judgedRouter(io, flags)),
    embeddings: embeddingPlace(io, flags),
    ...{ seed: flags.seed, keepIn, dryRun: flags.dryRun, clock: io.clock },
    candidates: candidatesOf(flags),
    epsilonCost: flags.qualityOnly === true ? null : flags.epsilonCost,
    total: flags.totalReward === true ? given({ costWeight: flags.costWeight }) : undefined,
    tried: flags.candidatesTried,
    spec: readAnySpec(flags),
  };
}

function refusal(verdict: GateVerdict): RollbookError {
  const reasons = verdict.candidates.flatMap(({ revision, reasons: each }) =>
    each.map((reason) => `${revision.id}: ${reason}`),
  );
  return new RollbookError("gate-refused", { reasons }, `no policy passed the gate.${refusalText(verdict)}`);
}
