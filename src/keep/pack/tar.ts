/** A pack as one file: POSIX tar (ustar), plain files only, sorted, without times and owners, so that one pack has one
 *  sequence of bytes. Reading refuses everything that is not a plain file inside the target folder. */
import {
  closeSync,
  mkdirSync,
  openSync,
  readFileSync,
  readSync,
  statSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { RollbookError } from "../../base/index.ts";

const BLOCK = 512;
const END = Buffer.alloc(2 * BLOCK);

export function writeTar(file: string, folder: string, paths: readonly string[]): void {
  const out = openNew(file);
  try {
    for (const path of paths) {
      const bytes = readFileSync(join(folder, path));
      writeSync(out, headerOf(path, bytes.length));
      writeSync(out, bytes);
      writeSync(out, Buffer.alloc((BLOCK - (bytes.length % BLOCK)) % BLOCK));
    }
    writeSync(out, END);
  } finally {
    closeSync(out);
  }
}

function openNew(file: string): number {
  try {
    return openSync(file, "wx", 0o644);
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== "EEXIST") throw cause;
    throw new RollbookError("exists", { path: file }, `${file} already exists. Name another file.`, {
      cause,
    });
  }
}

/** Unpacks into an existing, empty folder. */
export function readTar(file: string, folder: string): void {
  const source = openSync(file, "r");
  try {
    const size = statSync(file).size;
    const header = Buffer.alloc(BLOCK);
    for (let at = 0; at + BLOCK <= size; ) {
      readFully(source, header, at, file);
      at += BLOCK;
      if (header.every((byte) => byte === 0)) return;
      const { path, length } = parseHeader(header, file);
      // Check before allocating memory: the length is only the header's claim.
      if (at + length > size) throw bad(file, `${path} is cut short`);
      const bytes = Buffer.alloc(length);
      readFully(source, bytes, at, file);
      const target = join(folder, path);
      mkdirSync(dirname(target), { recursive: true });
      writeFileSync(target, bytes, { flag: "wx" });
      at += Math.ceil(length / BLOCK) * BLOCK;
    }
    throw bad(file, "it is not a tar file, or it is cut short");
  } finally {
    closeSync(source);
  }
}

function headerOf(path: string, length: number): Buffer {
  const header = Buffer.alloc(BLOCK);
  const { name, prefix } = splitPath(path);
  header.write(name, 0, 100, "utf8");
  header.write("0000644\0", 100, "latin1");
  header.write("0000000\0", 108, "latin1");
  header.write("0000000\0", 116, "latin1");
  header.write(`${length.toString(8).padStart(11, "0")}\0`, 124, "latin1");
  header.write("00000000000\0", 136, "latin1");
  header.write("        0", 148, "latin1");
  header.write("ustar\x0000", 257, "latin1");
  header.write(prefix, 345, 155, "utf8");
  header.write(`${checksum(header).toString(8).padStart(6, "0")}\0 `, 148, "latin1");
  return header;
}

/** ustar has 100 bytes for the name and 155 for the folders before it. */
function splitPath(path: string): { name: string; prefix: string } {
  if (Buffer.byteLength(path) <= 100) return { name: path, prefix: "" };
  for (let at = path.indexOf("/"); at >= 0; at = path.indexOf("/", at + 1)) {
    const [prefix, name] = [path.slice(0, at), path.slice(at + 1)];
    if (Buffer.byteLength(prefix) <= 155 && Buffer.byteLength(name) <= 100) return { name, prefix };
  }
  throw new RollbookError(
    "long-path",
    { path },
    `${path} is too long for a tar file. Keep the pack as a folder.`,
  );
}

function parseHeader(header: Buffer, file: string): { path: string; length: number } {
  const text = (at: number, length: number) =>
    header.toString("utf8", at, at + length).replace(/\0[\s\S]*$/, "");
  const stated = Number.parseInt(text(148, 8).trim(), 8);
  const kept = Buffer.from(header);
  kept.fill(" ", 148, 156);
  if (checksum(kept) !== stated) throw bad(file, "it is not a tar file, or a header of it is damaged");
  const path = [text(345, 155), text(0, 100)].filter((part) => part !== "").join("/");
  const type = String.fromCharCode(header[156]!);
  if (type !== "0" && type !== "\0") throw bad(file, `${path} is not a plain file`);
  if (path.startsWith("/") || path.split("/").some((part) => part === "" || part === "." || part === ".."))
    throw bad(file, `${JSON.stringify(path)} lies outside the pack`);
  const length = Number.parseInt(text(124, 12).trim(), 8);
  if (!Number.isSafeInteger(length) || length < 0) throw bad(file, `${path} has no length`);
  return { path, length };
}

function checksum(header: Buffer): number {
  let sum = 0;
  for (let i = 0; i < BLOCK; i++) sum += header[i]!;
  return sum;
}

function readFully(file: number, into: Buffer, at: number, name: string): void {
  let done = 0;
  while (done < into.length) {
    const read = readSync(file, into, done, into.length - done, at + done);
    if (read === 0) throw bad(name, "it is cut short");
    done += read;
  }
}

function bad(file: string, problem: string): RollbookError {
  return new RollbookError(
    "bad-tar",
    { file },
    `${file} cannot be read as a pack: ${problem}. Name the folder or the tar file of a pack.`,
  );
}
