/** Remembers the files that were imported into a book, with their settings.
 *  In: a book's folder, a file, the settings that read it. Out: a refusal if the file was imported with other settings,
 *  because its rows would enter twice. The list is operational, like the queue: without it an import works, and only
 *  this check is lost. */
import { createHash } from "node:crypto";
import { appendFileSync, createReadStream, existsSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { type Clock, canonicalize, type Json, RollbookError } from "../../base/index.ts";
import { RolloutContent } from "../../contract/index.ts";
import { sealDecision } from "../../convert/index.ts";
import { useBook } from "../open/index.ts";
import { type LogOptions, readLog } from "./read-log.ts";

const LIST = "imports.jsonl";

interface ImportedFile {
  readonly sha256: string;
  readonly name: string;
  readonly settings: string;
  readonly atMs: number;
}

/** Returns the entry to store before the first rows are written. Throws if the file was imported with other
 *  settings. */
export async function requireFirstImport(
  root: string,
  file: string,
  options: LogOptions,
): Promise<Omit<ImportedFile, "atMs">> {
  const sha256 = await digestFile(file);
  const settings = settingsOf(options);
  const known = importsOf(root).filter((each) => each.sha256 === sha256);
  const [first] = known;
  if (first === undefined || known.some((each) => each.settings === settings))
    return { sha256, name: basename(file), settings };
  throw new RollbookError(
    "imported-otherwise",
    { file, sha256, first: first.settings, now: settings },
    `${file} is already in this book, as a whole or in part, imported ${differs(first.settings, settings)}. You now import it ${differs(settings, first.settings)}; the rest is the same. ${await remedyOf(root, file, { options, known })}`,
  );
}

const OTHER_BOOK = "Import it into another book (`rollbook init --book DIR`, then add --book DIR).";

/** A row without a mapped id is named by its content, so a map of other columns gives it another id. */
async function remedyOf(
  root: string,
  file: string,
  { options, known }: { options: LogOptions; known: readonly ImportedFile[] },
): Promise<string> {
  if (!(await keepsIds(root, file, options)))
    return `Each row would get another id, and so count twice. ${OTHER_BOOK}`;
  const isNewFamily = known.every(({ settings }) => statedIn(settings).get("--family") !== options.family);
  return isNewFamily
    ? "Its rows keep their ids. To have them in both families, add --again: commands use one family, so no row counts twice."
    : `Its rows keep their ids, so the book would hold two contents of each. Commands use the one with the smaller digest, not the newer one. ${OTHER_BOOK}`;
}

/** Rows looked up: the settings name all rows of a file in the same way. */
const LOOKED_UP = 100;

/** True if the book holds rollouts with ids that the settings give to rows of the file. */
async function keepsIds(root: string, file: string, options: LogOptions): Promise<boolean> {
  const ids: string[] = [];
  for await (const row of readLog(file, { ...options, onNote: undefined })) {
    ids.push(sealDecision(row).content.record.rolloutId);
    if (ids.length === LOOKED_UP) break;
  }
  return useBook(
    root,
    { mode: "read" },
    async (book) => (await book.index()).digestsOf(RolloutContent.kind, ids).length > 0,
  );
}

/** Differences of one import from another: `with --map reward=score --family router`, `without --family`. */
function differs(settings: string, other: string): string {
  const [here, there] = [statedIn(settings), statedIn(other)];
  const own = [...here].filter(([name, value]) => there.get(name) !== value);
  const lacking = [...there.keys()].filter((name) => !here.has(name));
  const mapped = own.flatMap(([name, value]) => (name.startsWith("--") ? [] : [`${name}=${value}`]));
  const stated = [
    ...(mapped.length === 0 ? [] : [`--map ${mapped.join(",")}`]),
    ...own.flatMap(([name, value]) => (name.startsWith("--") ? [`${name} ${value}`] : [])),
  ];
  return [
    ...(stated.length === 0 ? [] : [`with ${stated.join(" ")}`]),
    ...(lacking.length === 0
      ? []
      : [`without ${lacking.map((name) => (name.startsWith("--") ? name : `${name}=`)).join(", ")}`]),
  ].join(" and ");
}

/** Settings by option, and map entries by key, as a user types them. */
function statedIn(settings: string): Map<string, string> {
  const stated = new Map<string, string>();
  for (const part of settings.split(/ (?=--(?:map|actions|family) )/)) {
    const [flag, value] = [part.slice(0, part.indexOf(" ")), part.slice(part.indexOf(" ") + 1)];
    if (flag === "--map")
      for (const [key, column] of Object.entries(JSON.parse(value) as Record<string, unknown>))
        stated.set(key === "action" ? "model" : key, columnText(column));
    else if (flag === "--actions") {
      const { count, names } = JSON.parse(value) as { count: number; names?: string[] };
      stated.set(flag, names?.join(",") ?? String(count));
    } else stated.set(flag, value);
  }
  return stated;
}

/** Text of a column, a list of columns, or columns with weights. */
function columnText(column: unknown): string {
  if (!Array.isArray(column)) return String(column);
  return column
    .map((each: string | { column: string; weight: number }) =>
      typeof each === "string" ? each : `${each.column}:${each.weight}`,
    )
    .join("+");
}

export function noteImport(root: string, note: Omit<ImportedFile, "atMs">, clock: Clock): void {
  const isKnown = importsOf(root).some(
    ({ sha256, settings }) => sha256 === note.sha256 && settings === note.settings,
  );
  if (isKnown) return;
  appendFileSync(join(root, LIST), `${JSON.stringify({ ...note, atMs: clock.nowMs() })}\n`, {
    mode: 0o600,
  });
}

/** Ignores a line that a crash cut short. */
function importsOf(root: string): ImportedFile[] {
  const path = join(root, LIST);
  if (!existsSync(path)) return [];
  return readFileSync(path, "utf8")
    .split("\n")
    .flatMap((line) => entryIn(line));
}

function entryIn(line: string): ImportedFile[] {
  try {
    return line === "" ? [] : [JSON.parse(line) as ImportedFile];
  } catch {
    return [];
  }
}

/** Settings that determine how a row is read, as command line options. */
function settingsOf({ format, map, actions, family }: LogOptions): string {
  return [
    `--format ${format}`,
    ...(map === undefined ? [] : [`--map ${canonicalize(map as unknown as Json)}`]),
    ...(actions === undefined ? [] : [`--actions ${canonicalize(actions as unknown as Json)}`]),
    ...(family === undefined ? [] : [`--family ${family}`]),
  ].join(" ");
}

async function digestFile(path: string): Promise<string> {
  const hash = createHash("sha256");
  for await (const chunk of createReadStream(path)) hash.update(chunk as Buffer);
  return hash.digest("hex");
}
