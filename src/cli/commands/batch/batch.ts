/** Implements `rollbook batch`: cuts trainer batches, shows them, and compares two. */
import { type Command, InvalidArgumentError, Option } from "commander";
import { type Digest, isDigest, isRollbookError, RollbookError } from "../../../base/index.ts";
import {
  type BatchDetails,
  compareBatches,
  cutBatch,
  listBatches,
  readEvidence,
  showBatch,
} from "../../../book/batches/index.ts";
import { wrongUsage } from "../../../book/decisions/index.ts";
import { knownRevisions, type OpenBook } from "../../../book/open/index.ts";
import {
  type AdvantageMethod,
  encodeWire,
  type LogprobKind,
  LossLedger,
  PolicyRevisionLineage,
  TrainerBatch,
} from "../../../contract/index.ts";
import { batchWarnings, renderBatch, renderBatches, renderDifferences } from "../../../view/batch-view.ts";
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
    summary: "assemble, show, compare, verify and export trainer batches",
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
  level?: "token" | "step";
  family?: string;
  advantage?: AdvantageMethod;
  seed: bigint;
  feedback?: string;
  logprobKind?: LogprobKind;
  tokenizer?: Digest;
  propensity?: "distribution" | "choice";
  requireVerdict?: true;
  maxLength?: number;
  exp?: string;
  artifact?: string[];
  exclude?: string[];
}

function addAssemble(batch: Command, io: Io): void {
  const command = addCommand(batch, "assemble", {
    summary: "assemble a batch from the artifacts of the book",
    description: `Assemble a batch, the rows that a trainer learns from, out of the rollouts of the book. A rollout holds
streams: the choices of one policy, at the level of tokens or of steps (decisions). A batch takes the streams of one
level and one policy family. The ledger lists everything left out, with the reason. The same records, options and seed
give the same batch.

If you give no age limit, a token batch leaves out rollouts that are more than 3 revisions behind the target, and a step
batch takes all. An age limit also leaves out rollouts whose distance from the target is unknown.`,
    examples: [
      "rollbook batch assemble --target writer-r3 --level token",
      "rollbook batch assemble --target router-r2 --level step --advantage leave-one-out --seed 7",
    ],
  })
    .option(
      "--target <revision>",
      "required: the policy revision to improve: id, digest, or first digits; `artifact ls --revisions` lists them (an imported log has the revision `logged`)",
    )
    .addOption(
      new Option(
        "--level <level>",
        "required: level of the choices: token, or step (one decision, such as which model answers)",
      ).choices(["token", "step"]),
    )
    .addOption(
      new Option(
        "--advantage <method>",
        "how the advantage of a rollout is computed: mean-std (its reward minus the mean of its group, divided by the standard deviation), leave-one-out (minus the mean of the others), claimed (as recorded) or none (default: mean-std)",
      ).choices(["mean-std", "leave-one-out", "claimed", "none"]),
    )
    .addOption(seedOption("fixes the order of rows", 0n))
    .option("--require-trusted", "refuse unless a trusted key signed every record that is used")
    .optionsGroup("Streams to use:")
    .option(
      "--family <family>",
      "only streams of this policy family, which must be the target's (default: stop if the rollouts hold several families)",
    )
    .option(
      "--feedback <name>",
      "where a stream has no reward, use late feedback of this name (`rollbook feedback --name`; default: none)",
    )
    .addOption(
      new Option(
        "--logprob-kind <kind>",
        "use token log-probabilities of this kind: sampling (of the distribution that was sampled from) or model (of the model alone) (default: the only kind; a mix is refused)",
      ).choices(["sampling", "model"]),
    )
    .option("--tokenizer <digest>", "only token streams of this tokenizer (default: any)", digestArgument)
    .addOption(
      new Option(
        "--propensity <which>",
        "steps: distribution (only decisions that log the probabilities of all candidates) or choice (also those that log the probability of the choice alone, as imported logs do) (default: distribution; choice if there is none)",
      ).choices(["distribution", "choice"]),
    )
    .option("--require-verdict", "leave out rollouts that no validator has accepted")
    .option(
      "--max-length <n>",
      "leave out streams of more tokens or steps than this (default: no limit)",
      wholeNumber,
    )
    .option(
      "--exp <id>",
      "only rollouts of this experiment, a name in the column EXPERIMENT of `artifact ls` (default: all)",
    )
    .option("--artifact <id...>", "only these rollouts: ids, digests, or first digits (default: all)")
    .option("--exclude <id...>", "not these rollouts (default: none)");
  addFreshnessOptions(command, { none: true }).action((flags: AssembleFlags) => runAssemble(io, flags));
}

function digestArgument(text: string): Digest {
  if (!isDigest(text)) throw new InvalidArgumentError("It must be a digest: sha256: and 64 hex digits.");
  return text;
}

async function runAssemble(io: Io, flags: AssembleFlags): Promise<void> {
  const { target, level, family, advantage, feedback, requireVerdict, maxLength, seed, exclude } = flags;
  if (level === undefined || target === undefined) throw await missingOptions(io, flags);
  if (level === "token" && flags.propensity !== undefined)
    throw new RollbookError(
      "wrong-usage",
      { option: "propensity" },
      "--propensity has no effect with --level token. Remove it.",
    );
  await withBook(io, { ...flags, mode: "write" }, async (book) => {
    const batch = await cutBatch(book, {
      ...{ target, level, family, advantage, feedback, requireVerdict, maxLength, seed, exclude },
      experiment: flags.exp,
      artifacts: flags.artifact,
      logprobKind: flags.logprobKind,
      tokenizer: flags.tokenizer,
      propensity: flags.propensity,
      ...batchFreshness(flags),
      onProgress(done, total) {
        if (io.live && (done % 1000 === 0 || done === total)) io.err(`\rrow ${done} of ${total}`);
      },
    });
    if (io.live) io.err("\n");
    const details = await showBatch(book, batch.digest);
    await printBatch(io, { flags, book }, details);
    for (const warning of batchWarnings(details, flags)) io.err(`warning: ${warning}\n`);
  });
}

/** Names all missing options, and lists the known revisions, which Commander's own error cannot do. */
async function missingOptions(io: Io, flags: AssembleFlags): Promise<RollbookError> {
  const missing = [
    ...(flags.target === undefined ? ["'--target <revision>'"] : []),
    ...(flags.level === undefined ? ["'--level <level>' (token or step)"] : []),
  ];
  const what = `required option${missing.length > 1 ? "s" : ""} ${missing.join(" and ")} not specified`;
  if (flags.target !== undefined) return wrongUsage(what);
  const known = await withBook(io, flags, async (book) => knownRevisions(await book.index())).catch(
    (error) => {
      if (isRollbookError(error, "no-book")) return error.message;
      throw error;
    },
  );
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
        else await printBatch(io, { flags, book }, await showBatch(book, name));
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
    io.err("the book holds no batch yet: `rollbook batch assemble` assembles and seals one\n");
  else io.out(renderBatches(batches));
}

function addDiff(batch: Command, io: Io): void {
  addCommand(batch, "diff", {
    summary: "explain how two batches differ",
    examples: ["rollbook batch diff b745 57a3"],
  })
    .argument("<first>", "digest of a batch, or the first digits of it")
    .argument("<second>", "digest of another batch")
    .action(async (first: string, second: string, flags: BookFlags) => {
      const differences = await withBook(io, flags, (book) => compareBatches(book, first, second));
      io.out(flags.json ? jsonLine(differences) : renderDifferences(differences));
    });
}

async function printBatch(
  io: Io,
  { flags, book }: { readonly flags: { json?: true }; readonly book: OpenBook },
  details: BatchDetails,
): Promise<void> {
  if (!flags.json) {
    io.out(renderBatch(details, await readEvidence(book, details)));
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
