/** A Zarr store in a directory: one file per key, replaced atomically (temporary file, rename).
 *  In: keys and bytes. Out: files. Values are durable once `commit` resolves. Small values are transferred
 *  synchronously, which is fastest. Large values use the thread pool, so that several are transferred while the caller
 *  hashes or checks others. Reads keep a few files open: call `close` when done. */
import * as fs from "node:fs";
import { dirname, join, resolve } from "node:path";
import { promisify } from "node:util";
import { RollbookError, reasonOf } from "../../../base/index.ts";
import { makeDirectory, syncDirectory } from "../../../store/index.ts";
import { eachInFlight, type MaybePromise, type Store } from "./store.ts";

/** Up to this size, which fits in the second-level cache of a core, a transfer is not worth a trip to the thread
 *  pool. */
const AT_ONCE_BYTES = 256 * 1024;
const MAX_OPEN_FILES = 128;
const TEMPORARY = ".tmp";

const readAsync = promisify(fs.read);
const readvAsync = promisify(fs.readv);
const writeAsync = promisify(fs.write);
const openAsync = promisify(fs.open);
const fsyncAsync = promisify(fs.fsync);
const closeAsync = promisify(fs.close);

interface OpenFile {
  fd: number;
  size: number;
}

export class FileStore implements Store {
  readonly borrows = true;
  readonly readsAtOnce = AT_ONCE_BYTES;
  readonly root: string;
  /** Least recently used first. Only synchronous reads use these files, so none is closed during a read. */
  readonly #open = new Map<string, OpenFile>();
  #newest: OpenFile | undefined;
  readonly #unsyncedFiles = new Set<string>();
  readonly #unsyncedDirectories = new Set<string>();
  readonly #directories = new Set<string>();
  #temporaries = 0;

  constructor(root: string) {
    this.root = resolve(root);
  }

  get(key: string): MaybePromise<Uint8Array | undefined> {
    return this.#guard("read", key, () => {
      const file = this.#openFile(key);
      if (file === undefined) return undefined;
      const bytes = Buffer.allocUnsafeSlow(file.size);
      return then(this.#readAndClose(file, [bytes], 0), () => bytes);
    });
  }

  readInto(key: string, parts: readonly Uint8Array[], offset: number): MaybePromise<number | undefined> {
    return this.#guard("read", key, () => {
      let wanted = 0;
      for (const part of parts) wanted += part.length;
      if (wanted <= AT_ONCE_BYTES) {
        const file = this.#keepOpen(key);
        if (file === undefined) return undefined;
        const at = offset < 0 ? Math.max(0, file.size + offset) : offset;
        checkRead(readSync(file.fd, parts, at), Math.min(wanted, file.size - at));
        return file.size;
      }
      const file = this.#openFile(key);
      if (file === undefined) return undefined;
      return then(this.#readAndClose(file, parts, offset), () => file.size);
    });
  }

  set(key: string, bytes: Uint8Array): MaybePromise<void> {
    return this.#guard("write", key, () => {
      const path = this.#path(key);
      this.#forget(key);
      this.#makeDirectory(dirname(path));
      const temporary = `${path}.${process.pid}-${this.#temporaries++}${TEMPORARY}`;
      const fd = fs.openSync(temporary, "wx");
      const publish = () => {
        fs.closeSync(fd);
        fs.renameSync(temporary, path);
        this.#unsyncedDirectories.add(dirname(path));
        this.#unsyncedFiles.add(path);
      };
      const abandon = (error: unknown) => {
        fs.rmSync(temporary, { force: true });
        throw error;
      };
      return settle(() => then(writeAll(fd, bytes), publish), abandon);
    });
  }

  *keys(prefix = ""): Generator<string> {
    const folder = prefix.slice(0, prefix.lastIndexOf("/") + 1);
    for (const key of this.#walk(folder)) if (key.startsWith(prefix)) yield key;
  }

  /** When it resolves, everything set so far is on disk: files first, then the directories that name them. */
  async commit(): Promise<void> {
    const files = [...this.#unsyncedFiles];
    this.#unsyncedFiles.clear();
    await eachInFlight(files.length, 8, (i) => syncFile(files[i]!));
    for (const directory of this.#unsyncedDirectories) syncDirectory(directory);
    this.#unsyncedDirectories.clear();
  }

  close(): void {
    for (const key of [...this.#open.keys()]) this.#forget(key);
  }

  #path(key: string): string {
    const parts = key.split("/");
    if (parts.some((part) => part === "" || part === "." || part === ".." || part.endsWith(TEMPORARY)))
      throw new RollbookError("zarr-bad-key", { key }, `${JSON.stringify(key)} is not a key of a store.`);
    return join(this.root, key);
  }

  #openFile(key: string): OpenFile | undefined {
    try {
      const fd = fs.openSync(this.#path(key), "r");
      return { fd, size: fs.fstatSync(fd).size };
    } catch (error) {
      if (isAbsent(error)) return undefined;
      throw error;
    }
  }

  #keepOpen(key: string): OpenFile | undefined {
    const known = this.#open.get(key);
    const file = known ?? this.#openFile(key);
    if (file === undefined || file === this.#newest) return file;
    this.#newest = file;
    this.#open.delete(key);
    this.#open.set(key, file);
    if (this.#open.size > MAX_OPEN_FILES) this.#forget(this.#open.keys().next().value!);
    return file;
  }

  #forget(key: string): void {
    const file = this.#open.get(key);
    if (file === undefined) return;
    this.#open.delete(key);
    if (this.#newest === file) this.#newest = undefined;
    fs.closeSync(file.fd);
  }

  #readAndClose(file: OpenFile, parts: readonly Uint8Array[], offset: number): MaybePromise<void> {
    const at = offset < 0 ? Math.max(0, file.size + offset) : offset;
    const wanted = parts.reduce((sum, part) => sum + part.length, 0);
    const finish = (count: number) => {
      fs.closeSync(file.fd);
      checkRead(count, Math.min(wanted, file.size - at));
    };
    if (wanted <= AT_ONCE_BYTES) return finish(readSync(file.fd, parts, at));
    return readPooled(file.fd, parts, at).then(finish, (error) => {
      fs.closeSync(file.fd);
      throw error;
    });
  }

  #makeDirectory(directory: string): void {
    if (this.#directories.has(directory)) return;
    const first = this.#makeChild(directory) ?? makeDirectory(directory, { sync: false });
    this.#directories.add(directory).add(dirname(directory));
    if (first === undefined) return;
    // Every directory from the parent of the first new one down has new names.
    for (let at = directory; at !== dirname(first); at = dirname(at))
      this.#unsyncedDirectories.add(dirname(at));
  }

  /** Every chunk of an array of rows has its own directory, beside that of the previous chunk: one call creates it. */
  #makeChild(directory: string): string | undefined {
    if (!this.#directories.has(dirname(directory))) return undefined;
    try {
      fs.mkdirSync(directory);
      return directory;
    } catch {
      // `makeDirectory` finds the cause and reports it.
      return undefined;
    }
  }

  *#walk(folder: string): Generator<string> {
    let entries: fs.Dirent[];
    try {
      entries = fs.readdirSync(join(this.root, folder), { withFileTypes: true });
    } catch (error) {
      if (isAbsent(error)) return;
      throw error;
    }
    for (const entry of entries) {
      if (entry.isDirectory()) yield* this.#walk(`${folder}${entry.name}/`);
      else if (!entry.name.endsWith(TEMPORARY)) yield folder + entry.name;
    }
  }

  /** Adds the key and the store to an operating system error. */
  #guard<T>(action: "read" | "write", key: string, work: () => MaybePromise<T>): MaybePromise<T> {
    return settle(work, (cause) => {
      if (cause instanceof RollbookError) throw cause;
      throw new RollbookError(
        `zarr-${action}`,
        { root: this.root, key },
        `cannot ${action} ${key} in ${this.root}: ${reasonOf(cause)}. Check the disk and its permissions.`,
        { cause },
      );
    });
  }
}

/** Runs `work` and passes thrown and rejected errors to `onError`. */
function settle<T>(work: () => MaybePromise<T>, onError: (error: unknown) => never): MaybePromise<T> {
  try {
    const result = work();
    return result instanceof Promise ? result.catch(onError) : result;
  } catch (error) {
    return onError(error);
  }
}

function then<A, B>(value: MaybePromise<A>, next: (value: A) => B): MaybePromise<B> {
  return value instanceof Promise ? value.then(next) : next(value);
}

function isAbsent(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException;
  return code === "ENOENT" || code === "ENOTDIR";
}

function readSync(fd: number, parts: readonly Uint8Array[], at: number): number {
  return parts.length === 1
    ? fs.readSync(fd, parts[0]!, 0, parts[0]!.length, at)
    : fs.readvSync(fd, parts as Uint8Array[], at);
}

async function readPooled(fd: number, parts: readonly Uint8Array[], at: number): Promise<number> {
  if (parts.length > 1) return (await readvAsync(fd, parts as Uint8Array[], at)).bytesRead;
  const [part] = parts as [Uint8Array];
  return (await readAsync(fd, part, 0, part.length, at)).bytesRead;
}

/** The size was read when the file was opened: fewer bytes mean that the file has shrunk. */
function checkRead(count: number, expected: number): void {
  if (count < expected) throw new Error(`read ${count} of ${expected} bytes; the file has shrunk`);
}

function writeAll(fd: number, bytes: Uint8Array): MaybePromise<void> {
  if (bytes.length > AT_ONCE_BYTES) return writePooled(fd, bytes);
  for (let at = 0; at < bytes.length; ) at += fs.writeSync(fd, bytes, at, bytes.length - at, at);
}

async function writePooled(fd: number, bytes: Uint8Array): Promise<void> {
  for (let at = 0; at < bytes.length; )
    at += (await writeAsync(fd, bytes, at, bytes.length - at, at)).bytesWritten;
}

async function syncFile(path: string): Promise<void> {
  const fd = await openAsync(path, "r");
  try {
    await fsyncAsync(fd);
  } finally {
    await closeAsync(fd);
  }
}
