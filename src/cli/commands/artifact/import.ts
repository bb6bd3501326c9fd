/** Implements `rollbook artifact import`: seals and signs the records of files and pipes. */
import { type Command, Option } from "commander";
import type { RollbookError } from "../../../base/index.ts";
import {
  type ImportSummary,
  type ImportWarning,
  importRollouts,
  refusedError,
} from "../../../book/import/index.ts";
import type { LogprobKind } from "../../../contract/index.ts";
import { jsonLine, plural, printable } from "../../../view/format.ts";
import { addCommand } from "../../command.ts";
import type { Io } from "../../io.ts";
import { tellRefusalsOnce } from "../../repeated-refusals.ts";
import { type BookFlags, withBook } from "../../with-book.ts";

interface ImportFlags extends BookFlags {
  strict?: true;
  sign: boolean;
  logprobKind?: LogprobKind;
  dataSource?: "real" | "synthetic";
}

/** Errors and warnings beyond this number are counted, not printed. */
const MOST_ERRORS = 100;

export function addArtifactImport(artifact: Command, io: Io): void {
  addCommand(artifact, "import", {
    summary: "seal and sign records from JSON or JSON Lines",
    description: `Seal and sign records from JSON or JSON Lines: rollouts (rollbook.rollout.v1), policy revisions,
tasks, assignments, verdicts, releases, feedback and other records by their schema, artifacts of the trainer Psionic (psionic-v1), and chat
logs of OpenAI and Anthropic: each line with the bodies "request" and "response" becomes a rollout of one call.
Records that the book already holds are recognised by digest, and signed if your key has not signed them yet. A bad
line is skipped and reported with its file and line number; lines with the same fault are reported together.`,
    examples: [
      "rollbook artifact import rollouts.jsonl",
      "rollbook artifact show r-0001 --json | rollbook artifact import -",
    ],
  })
    .argument("<file...>", "files to read; - is standard input")
    .option("--strict", "write nothing if a line is bad")
    .option("--no-sign", "do not sign, even if there is a key")
    .addOption(
      new Option(
        "--logprob-kind <kind>",
        "required by psionic-v1 artifacts: sampling if their log-probabilities are of the sampled distribution, model if of the model alone",
      ).choices(["sampling", "model"]),
    )
    .addOption(
      new Option(
        "--data-source <source>",
        "origin of the rollouts; required by psionic-v1 artifacts (default for chat logs: real)",
      ).choices(["real", "synthetic"]),
    )
    .action((files: string[], flags: ImportFlags) => runImport(io, files, flags));
}

async function runImport(io: Io, files: readonly string[], flags: ImportFlags): Promise<void> {
  const { logprobKind, dataSource, strict = false } = flags;
  const errors: RollbookError[] = [];
  const { tell, end } = tellRefusalsOnce((text) => io.err(text));
  const inputs = files.map((file) => (file === "-" ? { name: "<stdin>", stream: io.stdin } : file));
  const { signedBy, warnings, ...summary } = await withBook(io, { ...flags, mode: "write" }, (book) =>
    importRollouts(book, inputs, {
      ...{ logprobKind, dataSource, strict },
      onRefusal(error) {
        if (errors.length < MOST_ERRORS) errors.push(error);
        if (!flags.json) tell(error);
      },
      onProgress: progressOn(io),
    }),
  );
  end();
  if (flags.json)
    io.out(jsonLine({ ...summary, signedBy, warnings, errors: errors.map((each) => each.toJSON()) }));
  else {
    printWarnings(io, warnings);
    io.out(`${summaryText(summary)}\n`);
    if (flags.sign && signedBy === null)
      io.err("not signed: there is no key (`rollbook keys new` makes one)\n");
  }
  if (summary.refused > 0) throw refusedError(summary, { strict });
}

function printWarnings(io: Io, warnings: readonly ImportWarning[]): void {
  for (const { code, message } of warnings.slice(0, MOST_ERRORS))
    io.err(`warning: ${printable(message)} [${code}]\n`);
  const more = warnings.length - MOST_ERRORS;
  if (more > 0) io.err(`… and ${plural(more, "warning")} more (--json lists all)\n`);
}

function summaryText({ imported, rollouts, already, signed, repaired, refused }: ImportSummary): string {
  const signedNow = signed === 0 ? "" : `, ${signed} signed now`;
  const mended = repaired === 0 ? "" : `, ${repaired} repaired`;
  // A file often holds revisions and tasks beside its rollouts, and `artifact ls` lists the rollouts only.
  const mixed = rollouts > 0 && rollouts < imported ? ` (${plural(rollouts, "rollout")})` : "";
  return `${imported} imported${mixed}, ${already} already there${signedNow}${mended}, ${refused} refused`;
}

function progressOn(io: Io): (items: number) => void {
  return (items) => {
    if (io.live && items % 1000 === 0) io.err(`\r${plural(items, "record")} read`);
  };
}
