/** Lines of a text file, plain or gzipped (detected by its first bytes), one at a time.
 *  Strict UTF-8. Refuses a line longer than the limit, which would fill the memory. Also refuses a long run of blank
 *  lines: a compressed megabyte can hold a billion of them. */
import { open } from "node:fs/promises";
import { pipeline } from "node:stream";
import { createGunzip } from "node:zlib";
import { RollbookError, reasonOf } from "../base/index.ts";

export interface TextLine {
  /** Without its line feed. A carriage return before the line feed is kept. */
  readonly text: string;
  /** Counts from 1. */
  readonly line: number;
}

const MAX_LINE_CHARS = 64 * 1024 * 1024;
/** Maximum length of a run of blank lines. */
const MAX_BLANK_CHARS = 1024 * 1024;

export async function* readLines(file: string): AsyncGenerator<TextLine> {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  let rest = "";
  let line = 0;
  let blankChars = 0;
  try {
    for await (const chunk of await openText(file)) {
      const text = rest + decoder.decode(chunk, { stream: true });
      let from = 0;
      for (let at = text.indexOf("\n", from); at >= 0; at = text.indexOf("\n", from)) {
        const found = text.slice(from, at);
        from = at + 1;
        line++;
        blankChars = found.trim() === "" ? blankChars + found.length + 1 : 0;
        if (blankChars > MAX_BLANK_CHARS)
          throw new RangeError(`more than ${MAX_BLANK_CHARS} characters of blank lines follow each other`);
        yield { text: found, line };
      }
      rest = text.slice(from);
      if (rest.length > MAX_LINE_CHARS)
        throw new RangeError(`a line is longer than ${MAX_LINE_CHARS} characters`);
    }
    rest += decoder.decode();
  } catch (cause) {
    if (cause instanceof RollbookError) throw cause;
    throw new RollbookError(
      "unreadable-file",
      { file, line: line + 1 },
      `${file}: reading stopped after line ${line}: ${reasonOf(cause)}. Check that the file is whole and UTF-8.`,
      { cause },
    );
  }
  if (rest !== "") yield { text: rest, line: line + 1 };
}

async function openText(file: string): Promise<AsyncIterable<Buffer>> {
  const handle = await open(file).catch((cause: NodeJS.ErrnoException) => {
    if (cause.code !== "ENOENT") throw cause;
    throw new RollbookError("no-file", { file }, `${file} does not exist. Check the path.`, { cause });
  });
  if ((await handle.stat()).isDirectory()) {
    await handle.close();
    throw new RollbookError("no-file", { file }, `${file} is a directory. Name a file in it.`);
  }
  const magic = Buffer.alloc(2);
  await handle.read(magic, 0, 2, 0);
  const bytes = handle.createReadStream({ start: 0, highWaterMark: 256 * 1024 });
  if (magic[0] !== 0x1f || magic[1] !== 0x8b) return bytes;
  const unzipped = createGunzip({ chunkSize: 256 * 1024 });
  // `pipeline` forwards errors and closes both ends. The reader gets the errors during iteration.
  pipeline(bytes, unzipped, () => {});
  return unzipped;
}
