/** `rollbook batch`: cuts trainer batches, shows them, says how two differ. */
import { type Command, InvalidArgumentError, Option } from "commander";
import { type Digest, isDigest, isRollbookError, RollbookError } from "../../../base/index.ts";
import {
  type BatchDetails,
  compareBatches,
  cutBatch,
  listBatches,
  showBatch,
} from "../../../book/batches/index.ts";
import { knownRevisions } from "../../../book/open/index.ts";
import {
  type AdvantageMethod,
  encodeWire,
  type LogprobKind,
  LossLedger,
  PolicyRevisionLineage,
  TrainerBatch,
} from "../../../contract/index.ts";
import { renderBatch, renderBatches, renderDifferences } from "../../../view/batch-view.ts";
import { jsonLine } from "../../../view/format.ts";
import { addCommand, addGroup, seedOption } from "../../command.ts";
import type { Io } from "../../io.ts";
import { addFreshnessOptions, batchFreshness, type FreshnessFlags } from "../../options/freshness-options.ts";
import { wholeNumber } from "../../options/numbers.ts";
import { type BookFlags, withBook } from "../../with-book.ts";
import { addBatchVerify } from "../maintain/verify.ts";
import { addBatchExport } from "./export.ts";

export function addBatch(program: Command, io: Io): void {
  const batch = addGroup(program, "batch", {
    summary: "cut trainer batches, show, compare, verify and export them",
    examples: ["rollbook batch assemble --target writer-r3 --level token", "rollbook batch show"],
  });
  addAssemble(batch, io);
  addShow(batch, io);
  addDiff(batch, io);
  addBatchVerify(batch, io);
  addBatchExport(batch, io);
}

interface AssembleFlags extends BookFlags, FreshnessFlags {
  target?: string;
  level: "token" | "step";
  family?: string;
  advantage?: AdvantageMethod;
  seed: bigint;
  feedback?: string;
  logprobKind?: LogprobKind;
  tokenizer?: Digest;
  requireVerdict?: true;
  maxLength?: number;
  exp?: string;
  artifact?: string[];
  exclude?: string[];
}

function addAssemble(batch: Command, io: Io): void {
  const command = addCommand(batch, "assemble", {
    summary: "cut a batch from the artifacts of the book",
    description: `Cut a batch from the artifacts of the book, or from those named. The batch is a function of the artifacts, what
has been said about them (receipts, verdicts, releases, feedback), the target, the options and the seed; the order in which
they arrived leaves no trace. The ledger lists everything left out, with the reason. Budgets of freshness
apply to this batch alone; the age of a rollout is judged first, and its verdicts are sealed. Without any budget, a token
batch leaves out what is more than 3 revisions behind its target.`,
    examples: [
      "rollbook batch assemble --target writer-r3 --level token",
      "rollbook batch assemble --target router-r2 --level step --advantage leave-one-out --seed 7",
    ],
  })
    .option("--target <revision>", "required: the policy revision to improve: id, digest, or first digits")
    .addOption(
      new Option("--level <level>", "which streams").choices(["token", "step"]).makeOptionMandatory(),
    )
    .option("--family <family>", "the policy family (default: the target's; a mix is refused)")
    .addOption(
      new Option("--advantage <method>", "how advantages come about (default: mean-std)").choices([
        "mean-std",
        "leave-one-out",
        "claimed",
        "none",
      ]),
    )
    .addOption(seedOption("fixes the order of rows", 0n))
    .option("--feedback <name>", "reward unlabelled streams with late feedback of this name")
    .addOption(
      new Option(
        "--logprob-kind <kind>",
        "which token log-probabilities (default: a mix is refused)",
      ).choices(["sampling", "model"]),
    )
    .option("--tokenizer <digest>", "only token streams of this tokenizer (default: any)", digestArgument)
    .option("--require-verdict", "leave out what no validator has accepted")
    .option("--require-trusted", "refuse if a record that counts is not signed by a trusted key")
    .option("--max-length <n>", "leave out longer streams", wholeNumber)
    .option("--exp <id>", "only rollouts of this experiment, as `launch --exp` named it")
    .option("--artifact <id...>", "only these artifacts")
    .option("--exclude <id...>", "not these artifacts");
  addFreshnessOptions(command, { none: true }).action((flags: AssembleFlags) => runAssemble(io, flags));
}

function digestArgument(text: string): Digest {
  if (!isDigest(text)) throw new InvalidArgumentError("It must be a digest: sha256: and 64 hex digits.");
  return text;
}

async function runAssemble(io: Io, flags: AssembleFlags): Promise<void> {
  const { target, level, family, advantage, feedback, requireVerdict, maxLength, seed, exclude } = flags;
  if (target === undefined) throw await missingTarget(io, flags);
  await withBook(io, { ...flags, mode: "write" }, async (book) => {
    const batch = await cutBatch(book, {
      ...{ target, level, family, advantage, feedback, requireVerdict, maxLength, seed, exclude },
      ...{
        experiment: flags.exp,
        artifacts: flags.artifact,
        logprobKind: flags.logprobKind,
        tokenizer: flags.tokenizer,
      },
      ...batchFreshness(flags),
      onProgress(done, total) {
        if (io.live && (done % 1000 === 0 || done === total)) io.err(`\rrow ${done} of ${total}`);
      },
    });
    if (io.live) io.err("\n");
    printBatch(io, flags, await showBatch(book, batch.digest));
  });
}

/** Commander would not know what there is to name. */
async function missingTarget(io: Io, flags: BookFlags): Promise<RollbookError> {
  const known = await withBook(io, flags, async (book) => knownRevisions(await book.index())).catch(
    (error) => {
      if (isRollbookError(error, "no-book")) return error.message;
      throw error;
    },
  );
  const what = "required option '--target <revision>' not specified";
  return new RollbookError("wrong-usage", {}, `${what}. ${known} See --help.`);
}

function addShow(batch: Command, io: Io): void {
  addCommand(batch, "show", {
    summary: "show a batch, or list all of them",
    examples: ["rollbook batch show", "rollbook batch show b745 --json"],
  })
    .argument("[batch]", "digest, or the first digits of it (default: a list of all)")
    .action(async (name: string | undefined, flags: BookFlags) => {
      await withBook(io, flags, async (book) => {
        if (name === undefined) printBatches(io, flags, await listBatches(book));
        else printBatch(io, flags, await showBatch(book, name));
      });
    });
}

function printBatches(
  io: Io,
  flags: { json?: true },
  batches: Awaited<ReturnType<typeof listBatches>>,
): void {
  if (flags.json) {
    for (const { digest, batch } of batches) {
      const { target, selection, seed, totals } = batch;
      io.out(jsonLine({ digest, target, selection, seed, totals }));
    }
  } else if (batches.length === 0)
    io.err("the book holds no batch yet: `rollbook batch assemble` cuts one\n");
  else io.out(renderBatches(batches));
}

function addDiff(batch: Command, io: Io): void {
  addCommand(batch, "diff", {
    summary: "say in words how two batches differ, and why",
    examples: ["rollbook batch diff b745 57a3"],
  })
    .argument("<first>", "digest of a batch, or the first digits of it")
    .argument("<second>", "digest of another")
    .action(async (first: string, second: string, flags: BookFlags) => {
      const differences = await withBook(io, flags, (book) => compareBatches(book, first, second));
      io.out(flags.json ? jsonLine(differences) : renderDifferences(differences));
    });
}

function printBatch(io: Io, flags: { json?: true }, details: BatchDetails): void {
  if (!flags.json) {
    io.out(renderBatch(details));
    return;
  }
  const { digest, batch, lineage, ledger } = details;
  io.out(
    jsonLine({
      digest,
      batch: encodeWire(TrainerBatch, batch),
      lineage: encodeWire(PolicyRevisionLineage, lineage),
      ledger: encodeWire(LossLedger, ledger),
    }),
  );
}
