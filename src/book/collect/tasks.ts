/** Reads tasks: given row objects, or one JSON object per line of a file or a stream. */
import { createReadStream, statSync } from "node:fs";
import { decodeUtf8, type Json, parseJson, RollbookError } from "../../base/index.ts";
import { type NamedStream, splitLines } from "../import/index.ts";

/** Row objects, the path of a JSON Lines file, or a stream of JSON Lines. */
export type Tasks = string | NamedStream | Iterable<object> | AsyncIterable<object>;

const MAX_ROW_BYTES = 16 * 1024 * 1024;

export function rowsOf(tasks: Tasks): Iterable<unknown> | AsyncIterable<unknown> {
  if (typeof tasks === "string") {
    requireFile(tasks);
    return readFile(tasks);
  }
  return "stream" in tasks ? readRows(tasks) : tasks;
}

/** Name of the file or stream; undefined for row objects. */
export function sourceOf(tasks: Tasks): string | undefined {
  if (typeof tasks === "string") return tasks;
  return "stream" in tasks ? tasks.name : undefined;
}

/** Checked at once, not with the first row: a wrong path then leaves no book behind. */
function requireFile(path: string): void {
  if (statSync(path).isDirectory())
    throw new RollbookError("no-file", { path }, `${path} is a directory. Name a file of tasks in it.`);
}

async function* readFile(path: string): AsyncGenerator<Json> {
  yield* readRows({ name: path, stream: createReadStream(path) });
}

async function* readRows({ name, stream }: NamedStream): AsyncGenerator<Json> {
  for await (const { number, bytes } of splitLines(stream, MAX_ROW_BYTES)) {
    const where = `${name}:${number}`;
    if (bytes === undefined)
      throw new RollbookError("bad-row", { where }, `${where} is longer than ${MAX_ROW_BYTES} bytes.`);
    const text = decodeUtf8(bytes, where).trim();
    if (text !== "") yield parseTask(text, where);
  }
}

/** Parses one line of tasks. The error tells the form of the file, because its path may be the mistake. */
export function parseTask(text: string, where: string): Json {
  return parseJson(
    text,
    where,
    "Tasks are JSON Lines. Correct the line, or name a file with one JSON object per line.",
  );
}
