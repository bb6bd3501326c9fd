/** Remembers which files were imported into a book, and how. In: a book's folder, a file, the settings that read it.
 *  Out: a refusal if the file was imported with other settings: its rows would enter a second time.
 *  The list is operational, like the queue: without it an import works, and only the check is lost. */
import { createHash } from "node:crypto";
import { appendFileSync, createReadStream, existsSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { type Clock, canonicalize, type Json, RollbookError } from "../../base/index.ts";
import type { LogOptions } from "./read-log.ts";

const LIST = "imports.jsonl";

interface ImportedFile {
  readonly sha256: string;
  readonly name: string;
  readonly settings: string;
  readonly atMs: number;
}

/** The note to keep before the first rows are written. Throws if the file is there, read by other settings. */
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
    `${file} is in this book already, imported ${new Date(first.atMs).toISOString().slice(0, 16)}Z with ${first.settings}, as a whole or in part. With ${settings} every row would enter a second time, read in another way. Import it into a new book (--book DIR), or add --again if the rows are meant to count twice.`,
  );
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

/** A line that a crash cut short is no entry. */
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

/** What decides how a row reads, as the command line would spell it. */
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
