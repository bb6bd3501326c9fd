/** Implements `rollbook data import`: imports decision logs of other programs into the book, or converts them to a
 *  routing dataset. */
import { basename } from "node:path";
import { type Command, Option } from "commander";
import {
  formatOf,
  LOG_FORMATS,
  type LogFormat,
  type LogOptions,
  logWarnings,
  noteImport,
  previewLog,
  readLog,
  requireFirstImport,
  sealDecisions,
  writeDataset,
  wrongUsage,
} from "../../../book/decisions/index.ts";
import { isBook, keyringOf, loadSigner } from "../../../book/open/index.ts";
import { type RoutingMeta, sealDecision } from "../../../convert/index.ts";
import { renderDataset } from "../../../view/data/dataset-view.ts";
import { renderPreview } from "../../../view/data/log-preview.ts";
import { jsonLine, plural, printable, thousands } from "../../../view/format.ts";
import { addCommand } from "../../command.ts";
import type { Io } from "../../io.ts";
import { toActions, toFamily, toMap } from "../../options/log-options.ts";
import { bookRoot } from "../../with-book.ts";

interface DataImportFlags extends Omit<LogOptions, "format"> {
  format?: LogFormat;
  columns?: LogOptions["map"];
  dryRun?: true;
  again?: true;
  out?: string;
  book?: string;
  sign: boolean;
  json?: true;
}

export function addDataImport(data: Command, io: Io): void {
  addCommand(data, "import", {
    summary: "read a decision log of another format into the book, or into a routing dataset",
    description: `Read a decision log: your own CSV, JSON Lines or Parquet with --map, Vowpal Wabbit text and dsjson,
Open Bandit CSV, RLlib JSON, a table with the outcome of every candidate (needs --out), or a routing dataset itself.
Rows of one episode become one task. Without --out every decision is sealed into the book as a rollout, signed with
your key if there is one; importing a file twice adds nothing,
and the same file with another --map or --family is refused. With --out a routing dataset is written. --dry-run
writes nothing: it prints three rows as they were read, and what is missing. Rows are read one by one, so memory use
does not depend on the size of the file. Text files may be gzipped. In a CSV file without a comma in its
header, semicolons or tabs separate the fields. A bad row stops the import, and the error names its line.

--map is a list of KEY=COLUMN. In JSON Lines and Parquet a column may be a path such as request.messages[0].content.
Keys: model (the candidate that was chosen), reward (what policies learn from; without terms it is also the quality
that evaluate and gate judge), prompt or messages, propensity (the probability of the choice),
candidates (a list in each row), terms=quality:1+cost:-0.5 (columns and their weights; without reward= their weighted
sum is the reward), cost, latency, id, session, task, time (ISO 8601, without an offset UTC, or seconds or milliseconds since 1970), episode, step,
features=a+b. If a column name contains a
comma, a plus or an equals sign, give --map as a JSON object.

A table in which each row holds the outcome of every candidate has other keys: outcomes=small+large names one reward
column per candidate, and the columns name the candidates. Optional: costs=small_cost+large_cost, or costs={}_cost for
the same; prompt, features, id, task.`,
    examples: [
      "rollbook data import log.vw --format vw-cb --actions 2 --out from-vw.jsonl",
      "rollbook data import log.csv --map prompt=question,model=arm,reward=score,propensity=p --dry-run",
      "rollbook data import calls.jsonl --map messages=request.messages,model=response.model,reward=score --data-source real",
      "rollbook data import all.csv --map prompt=question,outcomes=small+large --out all.jsonl",
    ],
  })
    .argument("<file>", "the log")
    .addOption(
      new Option(
        "--format <format>",
        "format of the log (default: with --map, from the file extension; without --map, routing)",
      ).choices(LOG_FORMATS),
    )
    .option("--map <map>", "which column or path holds what: model=arm,reward=score,…", toMap)
    // Name of the option in 0.1.0.
    .addOption(new Option("--columns <map>").argParser(toMap).conflicts("map").hideHelp())
    .option("--dry-run", "print three rows as they were read and what is missing; write nothing")
    .option("--out <file>", "write a routing dataset there instead; never overwritten")
    .option(
      "--again",
      "import a file although the book has it with another --map or --family; its rows may then count twice",
    )
    .option("--no-sign", "do not sign, even if there is a key")
    .addOption(
      new Option(
        "--data-source <source>",
        "origin of rows that do not state one; an import into a book needs real or synthetic",
      )
        .choices(["real", "synthetic", "unknown"])
        .default("unknown"),
    )
    .option(
      "--family <name>",
      "policy family of the decisions; name `router` to use them together with the decisions of a gateway's router (default: the agent_role of a routing dataset; for other formats `imported`)",
      toFamily,
    )
    .option(
      "--actions <n or names>",
      "number of actions, or their names a,b,c (required for vw-cb; default: those of the file)",
      toActions,
    )
    .action(async (file: string, { columns, ...flags }: DataImportFlags) => {
      const map = flags.map ?? columns;
      const onNote = (note: string) => io.err(`note: ${printable(note)}\n`);
      const options = { ...flags, map, format: flags.format ?? formatOf(file, map), onNote };
      if (flags.dryRun) {
        const preview = await previewLog(file, options);
        io.out(flags.json ? jsonLine(preview) : renderPreview(preview));
        return;
      }
      const { out } = options;
      if (out === undefined && options.format === "outcomes")
        throw wrongUsage(
          `${flags.format === undefined ? "--map with outcomes=…" : "--format outcomes"} needs --out: a book keeps the outcome of the choice alone`,
        );
      const filters = { from: basename(file), format: options.format };
      if (out === undefined) await sealLog(io, file, options);
      else
        printDataset(io, { ...options, out }, await writeDataset(readLog(file, options), { out, filters }));
    });
}

async function sealLog(
  io: Io,
  file: string,
  flags: Omit<DataImportFlags, "format"> & LogOptions,
): Promise<void> {
  const signer = flags.sign ? loadSigner(keyringOf(io)) : undefined;
  const root = bookRoot(io, flags);
  // Faults of the file and a missing --data-source are reported before a missing book and conflicts with one. Other
  // formats are surveyed as a whole before their first row, which would take twice as long.
  const isChecked = flags.format === "routing" || !isBook(root);
  for await (const row of isChecked ? readLog(file, { ...flags, onNote: undefined }) : []) {
    sealDecision(row);
    break;
  }
  const note =
    flags.again === true || !isBook(root) ? undefined : await requireFirstImport(root, file, flags);
  const sealed = await sealDecisions(root, readLog(file, flags), {
    ...{ clock: io.clock, signer: () => signer },
    onWrite: () => note !== undefined && noteImport(root, note, io.clock),
  });
  if (flags.sign && signer === undefined)
    io.err("not signed: there is no key (`rollbook keys new` makes one)\n");
  for (const { code, message } of sealed.warnings) io.err(`warning: ${printable(message)} [${code}]\n`);
  io.out(
    flags.json
      ? jsonLine({ book: root, ...sealed, signedBy: signer?.publicKey ?? null })
      : `${sealedText(sealed)}: ${root}\n`,
  );
}

function sealedText(counts: Awaited<ReturnType<typeof sealDecisions>>): string {
  const { sealed, known, repaired, labelled, with_propensity } = counts;
  return [
    `${plural(sealed, "decision")} sealed`,
    ...(known === 0 ? [] : [`${thousands(known)} already there`]),
    ...(repaired === 0 ? [] : [`${thousands(repaired)} of them repaired`]),
    `${thousands(labelled)} with a reward`,
    `${thousands(with_propensity)} with a propensity`,
  ].join(", ");
}

export function printDataset(
  io: Io,
  { out, json }: { out: string; json?: true },
  { meta, isFull }: { meta: RoutingMeta; isFull: boolean },
  more: object = {},
): void {
  const { rows, units, candidates, least_propensity: leastPropensity } = meta;
  for (const warning of logWarnings({ rows, units, candidates, leastPropensity, isFull, purpose: "dataset" }))
    io.err(`warning: ${warning}\n`);
  io.out(json ? jsonLine({ out, ...meta, ...more }) : renderDataset(meta, { out, isFull }));
}
