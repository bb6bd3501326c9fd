/** `rollbook gate`: lets a policy through, or does not, and seals why. */
import { existsSync } from "node:fs";
import { type Command, Option } from "commander";
import { RollbookError, rngFrom } from "../../base/index.ts";
import type { GateVerdict, Sealed } from "../../contract/index.ts";
import { type GateMethod, type GateRule, gatePolicies } from "../../judge/index.ts";
import type { Range } from "../../judge/ope/index.ts";
import { writeAtomically } from "../../store/files.ts";
import { addCommand, wholeNumber } from "../command.ts";
import { loadRows } from "../../book/decisions/load-rows.ts";
import { addRowOptions, toDataFlags } from "../options/row-options.ts";
import type { Io } from "../io.ts";
import { followPromise } from "../../book/judge/calibrate.ts";
import { addJudgeOptions, type JudgeFlags, margin, share, toRange } from "../options/judge-options.ts";
import { judgeRowsOf } from "../../book/judge/judge-rows.ts";
import { fieldOf, type LoadedPolicy, loadPolicy } from "../../book/judge/load-policy.ts";
import { type Baseline, sealVerdict } from "../../book/judge/seal-verdict.ts";
import { bookRoot, isBook, withBook } from "../../book/open-book.ts";
import { jsonLine } from "../../view/format.ts";
import { renderVerdict } from "../../view/gate-view.ts";

interface GateFlags extends JudgeFlags {
  candidate: string[];
  baseline: string;
  epsilonQuality: number;
  epsilonCost: number;
  qualityOnly?: true;
  alpha: number;
  candidatesTried?: number;
  method: GateMethod;
  costRange?: Range;
  out?: string;
}

const METHODS: readonly GateMethod[] = ["student-t", "empirical-bernstein", "confidence-sequence"];

export function addGate(program: Command, io: Io): void {
  const command = addCommand(program, "gate", {
    summary: "let a policy through only if rows it has not seen show that it is not worse",
    description: `Let a policy through (exit 0) only if the lower bound of its quality minus the baseline's is at least -epsilon-quality
and the upper bound of its cost minus the baseline's at most epsilon-cost, on the judge split alone; refuse it (exit 1) with
the reasons otherwise. The error alpha is shared among all candidates tried (Bonferroni). The verdict is sealed in the book,
where there is one, with everything needed to reach it again.

Who looks again after every batch of rows needs --method confidence-sequence, which allows it; the other methods allow one look.`,
    examples: [
      "rollbook gate --data decisions.jsonl --candidate policies/learned --epsilon-quality 0.1",
      "rollbook gate --data decisions.jsonl --candidate policies/learned --baseline behaviour --epsilon-cost 0.2",
    ],
  })
    .requiredOption("--candidate <dir...>", "the policies that want to pass, as `train` wrote them")
    .option(
      "--baseline <which>",
      "static (the table), behaviour (the log's policy), or a checkpoint",
      "static",
    )
    .option("--epsilon-quality <x>", "how much quality may be lost", margin, 0)
    .option("--epsilon-cost <x>", "how much more it may cost", margin, 0)
    .option("--quality-only", "ask nothing of cost")
    .option("--alpha <a>", "chance of letting a worse one through, over all candidates", share, 0.05)
    .option(
      "--candidates-tried <n>",
      "all that were tried, also elsewhere (default: those given)",
      wholeNumber,
    )
    .addOption(new Option("--method <method>", "the bound").choices(METHODS).default("student-t"))
    .option("--cost-range <low..high>", "where cost lies, for the bounds that need it", toRange)
    .option("--out <file>", "also write the verdict here; never overwritten");
  addRowOptions(addJudgeOptions(command), { data: true }).action((flags: GateFlags) => run(io, flags));
}

async function run(io: Io, flags: GateFlags): Promise<void> {
  if (flags.out !== undefined && existsSync(flags.out))
    throw new RollbookError(
      "exists",
      { path: flags.out },
      `${flags.out} is there already. Name another --out.`,
    );
  const candidates = flags.candidate.map((folder) => loadPolicy(folder, flags));
  const baseline = baselineOf(flags, candidates[0]!);
  const rows = await loadRows(io, toDataFlags(flags));
  const { loaded, field } = baseline;
  const judged = judgeRowsOf(rows, [...candidates, ...(loaded === undefined ? [] : [loaded])]);
  const fields = candidates.map((each) => fieldOf(each, flags));
  // A floor that does not follow from its calibration rows lets nobody through, here as in `evaluate`.
  for (const [i, each] of candidates.entries()) followPromise(rows, each, fields[i]!);
  if (loaded !== undefined && field !== undefined) followPromise(rows, loaded, field);
  const rule = ruleOf(flags);
  const gated = gatePolicies(judged.rows, {
    rule,
    candidates: fields,
    baseline: field ?? "behaviour",
    rng: rngFrom(flags.seed),
  });
  const verdict = sealVerdict({
    candidates,
    fields,
    gated,
    rule,
    judged,
    baseline,
    seed: flags.seed,
    atMs: io.clock.nowMs(),
  });
  const sealed = await keep(io, flags, verdict);
  io.out(
    flags.json
      ? jsonLine({ verdict: verdict.digest, sealed, ...verdict.record })
      : renderVerdict(verdict, { sealed, unit: judged.rule.unit }),
  );
  if (verdict.record.outcome === "refuse") throw refusal(verdict.record);
}

function baselineOf(flags: GateFlags, first: LoadedPolicy): Baseline {
  if (flags.baseline === "behaviour") return { kind: "behaviour" };
  if (flags.baseline === "static")
    return { kind: "static", field: { ...fieldOf(first, flags), policy: undefined } };
  const loaded = loadPolicy(flags.baseline, flags);
  return { kind: "policy", loaded, field: fieldOf(loaded, flags) };
}

function ruleOf(flags: GateFlags): GateRule {
  const { method, alpha, epsilonQuality, epsilonCost, propensityFloor, qualityRange, costRange } = flags;
  const bounded = method !== "student-t";
  return {
    method,
    alpha,
    tried: flags.candidatesTried ?? flags.candidate.length,
    epsilonQuality,
    epsilonCost: flags.qualityOnly === true ? null : epsilonCost,
    ...(bounded
      ? {
          propensityFloor,
          ranges: { quality: qualityRange, ...(costRange === undefined ? {} : { cost: costRange }) },
        }
      : {}),
  };
}

/** Into the book, where there is one, and to --out. Says where it went. */
async function keep(io: Io, flags: GateFlags, { kind, bytes }: Sealed<GateVerdict>): Promise<boolean> {
  if (flags.out !== undefined) writeAtomically(flags.out, bytes, `${flags.out}.part`);
  if (!isBook(bookRoot(io, flags))) {
    if (flags.out === undefined)
      io.err(
        "note: there is no book, so the verdict is printed and kept nowhere; name one with --book, or --out FILE\n",
      );
    return false;
  }
  await withBook(io, { ...flags, mode: "write" }, async (book) => {
    book.put(kind, bytes);
    await book.flush();
  });
  return true;
}

function refusal({ candidates }: GateVerdict): RollbookError {
  const reasons = candidates.flatMap(({ revision, reasons: each }) =>
    each.map((reason) => `${revision.id}: ${reason}`),
  );
  return new RollbookError("gate-refused", { reasons }, `the gate lets none through. ${reasons.join("; ")}`);
}
