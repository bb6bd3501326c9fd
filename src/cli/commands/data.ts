/** `rollbook data`: routing datasets out of the book, and other formats into routing datasets. */
import { existsSync } from "node:fs";
import { basename } from "node:path";
import { type Command, Option } from "commander";
import { RollbookError } from "../../base/index.ts";
import type { ForeignDecision } from "../../convert/foreign-decision.ts";
import { readMappedCsv } from "../../convert/mapped-csv.ts";
import { readOpenBandit } from "../../convert/open-bandit.ts";
import { readRllibJson } from "../../convert/rllib-json.ts";
import { fromForeign, metaOf, type RoutingRow, readRoutingRows } from "../../convert/routing-jsonl.ts";
import { readDsjson } from "../../convert/vowpal-dsjson.ts";
import { readVowpalAdf, readVowpalCb } from "../../convert/vowpal-text.ts";
import { writeAtomically } from "../../store/files.ts";
import { addCommand, addGroup, wholeNumber } from "../command.ts";
import { loadRows } from "../dataset/load-rows.ts";
import { addRowOptions, filtersOf, type RowFlags, toDataFlags } from "../dataset/row-options.ts";
import type { Io } from "../io.ts";
import { jsonLine, plural } from "../output.ts";

const FORMATS = ["routing", "vw-cb", "vw-adf", "vw-dsjson", "open-bandit", "rllib", "csv"] as const;
type Format = (typeof FORMATS)[number];

export function addData(program: Command, io: Io): void {
  const data = addGroup(program, "data", {
    summary: "routing datasets: decisions with their outcomes, one per line",
    examples: [
      "rollbook data export --out routing.jsonl",
      "rollbook data import log.vw --format vw-cb --actions 2 --out from-vw.jsonl",
    ],
  });
  addExport(data, io);
  addImport(data, io);
}

function addExport(data: Command, io: Io): void {
  const command = addCommand(data, "export", {
    summary: "write the decisions of the book as a routing dataset",
    description: `Write the decisions of the book as a routing dataset (JSON Lines), with a sidecar <out>.meta.json that counts
rows by source and records the filters. Decisions and outcomes are joined by id; an outcome that is missing stays missing.`,
    examples: [
      "rollbook data export --out routing.jsonl",
      "rollbook data export --out real.jsonl --data-source real --since 2026-01-01",
    ],
  }).requiredOption("--out <file>", "where to write; never overwritten");
  addRowOptions(command, { data: false }).action(async (flags: RowFlags & { out: string; json?: true }) => {
    const rows = await loadRows(io, toDataFlags(flags));
    writeDataset(io, rows, { ...flags, filters: filtersOf(flags) });
  });
}

interface ImportFlags {
  format: Format;
  out: string;
  dataSource: "real" | "synthetic" | "unknown";
  actions?: number;
  columns?: Record<string, string>;
  json?: true;
}

function addImport(data: Command, io: Io): void {
  addCommand(data, "import", {
    summary: "read a decision log of another format into a routing dataset",
    description: `Read a decision log of another format into a routing dataset: Vowpal Wabbit text and dsjson, Open Bandit CSV,
RLlib JSON, CSV with a column map, or a routing dataset itself, which is checked row by row. Files may be gzipped. A bad row
stops the import with its line.`,
    examples: [
      "rollbook data import log.vw --format vw-cb --actions 2 --out from-vw.jsonl",
      "rollbook data import log.csv --format csv --columns action=arm,reward=score --out from-csv.jsonl",
    ],
    book: false,
  })
    .argument("<file>", "the log")
    .addOption(new Option("--format <format>", "what the log is").choices(FORMATS).default("routing"))
    .requiredOption("--out <file>", "where to write; never overwritten")
    .addOption(
      new Option("--data-source <source>", "what the data is")
        .choices(["real", "synthetic", "unknown"])
        .default("unknown"),
    )
    .option("--actions <n>", "how many actions there are (vw-cb)", wholeNumber)
    .option("--columns <map>", "csv: action=…,reward=…, and propensity, episode, step, features=a+b", toMap)
    .action(async (file: string, flags: ImportFlags) => {
      const rows: RoutingRow[] = [];
      for await (const row of readFormat(file, flags)) rows.push(row);
      writeDataset(io, rows, { ...flags, filters: { from: basename(file), format: flags.format } });
    });
}

async function* readFormat(file: string, flags: ImportFlags): AsyncGenerator<RoutingRow> {
  if (flags.format === "routing") return yield* readRoutingRows(file);
  const name = basename(file);
  for await (const decision of foreignRows(file, flags, flags.format))
    yield fromForeign(decision, { name, source: flags.dataSource });
}

function foreignRows(
  file: string,
  flags: ImportFlags,
  format: Exclude<Format, "routing">,
): AsyncIterable<ForeignDecision> {
  switch (format) {
    case "vw-cb":
      return readVowpalCb(file, { actions: required(flags.actions, "--actions") });
    case "vw-adf":
      return readVowpalAdf(file);
    case "vw-dsjson":
      return readDsjson(file);
    case "open-bandit":
      return readOpenBandit(file);
    case "rllib":
      return readRllibJson(file);
    case "csv":
      return readMappedCsv(file, { columns: columnMap(required(flags.columns, "--columns")) });
    default:
      return format satisfies never;
  }
}

function columnMap(map: Record<string, string>) {
  const { action, reward, features, ...rest } = map;
  const other = Object.keys(rest).find((name) => !["propensity", "episode", "step"].includes(name));
  if (action === undefined || reward === undefined || other !== undefined)
    throw wrongUsage(
      `--columns needs action and reward${other === undefined ? "" : `, and knows no ${other}`}`,
    );
  return { action, reward, ...rest, ...(features === undefined ? {} : { features: features.split("+") }) };
}

function writeDataset(
  io: Io,
  rows: readonly RoutingRow[],
  { out, filters, json }: { out: string; filters: Record<string, string>; json?: true },
): void {
  const sidecar = `${out}.meta.json`;
  for (const path of [out, sidecar])
    if (existsSync(path))
      throw new RollbookError("exists", { path }, `${path} is there already. Name another file with --out.`);
  const meta = metaOf(rows, filters);
  writeAtomically(out, Buffer.from(rows.map((row) => `${JSON.stringify(row)}\n`).join("")), `${out}.part`);
  writeAtomically(sidecar, Buffer.from(`${JSON.stringify(meta, null, 2)}\n`), `${sidecar}.part`);
  if (meta.below_recommended)
    io.err(
      `warning: ${plural(meta.rows, "row")}, fewer than the ${meta.recommended} a learned router needs\n`,
    );
  const sources = Object.entries(meta.by_source).map(([source, count]) => `${count} ${source}`);
  io.out(
    json
      ? jsonLine({ out, ...meta })
      : `${plural(meta.rows, "row")} (${sources.join(", ") || "none"}), ${meta.labelled} labelled, ${meta.with_propensity} with propensity: ${out}\n`,
  );
}

function required<T>(value: T | undefined, flag: string): T {
  if (value !== undefined) return value;
  throw wrongUsage(`this format needs ${flag}`);
}

function wrongUsage(what: string): RollbookError {
  return new RollbookError("wrong-usage", {}, `${what}. See --help.`);
}

function toMap(text: string): Record<string, string> {
  return Object.fromEntries(text.split(",").map((pair) => pair.split("=", 2) as [string, string]));
}
