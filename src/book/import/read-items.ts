/** Reads JSON values from a file or a pipe: one document, an array of records, or JSON Lines.
 *  In: a source. Out: values with their places. A bad value is an item too, so that the good ones after it are still
 *  read. JSON Lines are streamed; a document is read completely. */
import { createReadStream, createWriteStream } from "node:fs";
import { mkdtemp, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import {
  decodeUtf8,
  isRollbookError,
  type Json,
  parseJson,
  parseWideJson,
  RollbookError,
  type WideJson,
} from "../../base/index.ts";
import { type ByteLine, splitLines } from "./lines.ts";

export interface ImportSource {
  /** Name of the source in messages. */
  readonly name: string;
  read(): AsyncIterable<Uint8Array>;
}

export type Item =
  | {
      readonly where: string;
      /** Line of a record in JSON Lines, for programs that read errors. */
      readonly line?: number;
      readonly value: Json;
      /** Same value with integers beyond 2^53 kept exact, for formats that write them as numbers. */
      wide(): WideJson;
    }
  | { readonly where: string; readonly error: RollbookError };

const MAX_LINE_BYTES = 256 * 1024 ** 2;

/** Checks that the source can be read, before anything is written. */
export async function openSource(path: string): Promise<ImportSource> {
  let isFile: boolean;
  try {
    isFile = !(await stat(path)).isDirectory();
  } catch (cause) {
    throw new RollbookError("no-file", { path }, `${path}: no such file, or not readable. Check the path.`, {
      cause,
    });
  }
  if (!isFile) {
    throw new RollbookError(
      "no-file",
      { path },
      `${path} is a directory. Name the files in it, for example ${path.replace(/\/$/, "")}/*.jsonl`,
    );
  }
  return { name: path, read: () => createReadStream(path, { highWaterMark: 1 << 20 }) };
}

/** Copies a pipe to a file, so that it can be read twice; `dispose` removes the file. */
export async function spool(source: ImportSource): Promise<ImportSource & { dispose(): Promise<void> }> {
  const folder = await mkdtemp(join(tmpdir(), "rollbook-import-"));
  const file = join(folder, "input");
  await pipeline(source.read(), createWriteStream(file));
  return {
    name: source.name,
    read: () => createReadStream(file, { highWaterMark: 1 << 20 }),
    dispose: () => rm(folder, { recursive: true }),
  };
}

export async function* readItems(source: ImportSource, maxBytes = MAX_LINE_BYTES): AsyncGenerator<Item> {
  const lines = splitLines(source.read(), maxBytes);
  const first = await firstFilled(lines);
  if (first === undefined) {
    const message = `${source.name} is empty. Give it records, one JSON object a line.`;
    yield { where: source.name, error: new RollbookError("empty-file", { file: source.name }, message) };
  } else if (isTar(first)) {
    const message = `${source.name} is a tar file. \`rollbook pack verify\` reads run packs; unpack any other file first.`;
    yield { where: source.name, error: new RollbookError("bad-json", { file: source.name }, message) };
  } else if (isJsonLines(source.name, first)) {
    yield lineItem(source.name, first, maxBytes);
    for await (const line of lines) if (!isBlank(line)) yield lineItem(source.name, line, maxBytes);
  } else {
    yield* documentItems(source.name, await readDocument(first, lines, maxBytes), maxBytes);
  }
}

/** The header of a tar file has no line feed, and a mark at byte 257. */
function isTar({ bytes }: ByteLine): boolean {
  return bytes !== undefined && Buffer.from(bytes.subarray(257, 262)).toString("latin1") === "ustar";
}

async function firstFilled(lines: AsyncGenerator<ByteLine>): Promise<ByteLine | undefined> {
  for (;;) {
    const { value, done } = await lines.next();
    if (done === true) return undefined;
    if (!isBlank(value)) return withoutBom(value);
  }
}

/** True if the first line is a complete object, or if the file name says JSON Lines. */
function isJsonLines(name: string, { bytes }: ByteLine): boolean {
  if (/\.(jsonl|ndjson)$/i.test(name) || bytes === undefined) return true;
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  return (
    /^\s*\{/.test(text.subarray(0, 256).toString("latin1")) &&
    /\}\s*$/.test(text.subarray(-256).toString("latin1"))
  );
}

function lineItem(name: string, line: ByteLine, maxBytes: number): Item {
  const where = `${name}:${line.number}`;
  const item = guard(where, () => {
    if (line.bytes === undefined) throw tooLong(where, "line", maxBytes);
    const text = decodeUtf8(line.bytes, where);
    const wide = () => parseWideJson(text, where);
    return { where, line: line.number, value: parseJson(text, where), wide };
  });
  return "error" in item ? { where, error: placeInFile(item.error, where, line.number) } : item;
}

/** The parser counts lines within its text, which is one line of the file here. */
function placeInFile(error: RollbookError, where: string, line: number): RollbookError {
  const message = error.message.replace(`${where}:1:`, `${where}:`);
  return new RollbookError(error.code, { ...error.fields, line }, message, { cause: error });
}

async function readDocument(
  first: ByteLine,
  rest: AsyncIterable<ByteLine>,
  maxBytes: number,
): Promise<Buffer | undefined> {
  // Blank lines above the first value are kept, so that error messages give the right line.
  const parts: Uint8Array[] = [Buffer.from("\n".repeat(first.number - 1)), first.bytes!];
  let length = first.bytes!.length;
  for await (const line of rest) {
    length += (line.bytes?.length ?? maxBytes) + 1;
    if (length > maxBytes) return undefined;
    parts.push(Buffer.from("\n"), line.bytes!);
  }
  return Buffer.concat(parts);
}

function* documentItems(name: string, bytes: Buffer | undefined, maxBytes: number): Generator<Item> {
  const whole = guard(name, () => {
    if (bytes === undefined) throw tooLong(name, "document", maxBytes);
    const text = decodeUtf8(bytes, name);
    return { where: name, value: parseJson(text, name), wide: () => parseWideJson(text, name) };
  });
  if ("error" in whole || !Array.isArray(whole.value)) {
    yield whole;
    return;
  }
  let wide: readonly WideJson[] | undefined;
  for (const [i, value] of whole.value.entries()) {
    const wideItem = (): WideJson => {
      wide ??= whole.wide() as readonly WideJson[];
      return wide[i]!;
    };
    yield { where: `${name}[${i}]`, value, wide: wideItem };
  }
}

function guard(where: string, make: () => Item): Item {
  try {
    return make();
  } catch (error) {
    if (!isRollbookError(error)) throw error;
    return { where, error };
  }
}

function tooLong(where: string, what: string, maxBytes: number): RollbookError {
  return new RollbookError(
    "too-long",
    { where, maxBytes },
    `${where}: the ${what} is longer than ${maxBytes} bytes. Write JSON Lines, one record a line.`,
  );
}

function isBlank({ bytes }: ByteLine): boolean {
  return bytes?.every((byte) => byte === 32 || byte === 9 || byte === 13) === true;
}

function withoutBom(line: ByteLine): ByteLine {
  const { bytes } = line;
  const marked = bytes?.[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf;
  return marked ? { ...line, bytes: bytes.subarray(3) } : line;
}
