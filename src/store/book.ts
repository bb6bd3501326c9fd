/** The book: a directory that keeps blobs in append-only packs (docs/reference/store.md describes every byte).
 *  In: a directory. Out: a BlobStore over it. Any number of processes may read and write one book at the same time;
 *  each writer fills its own packs. Does not know what the blobs mean. */
import { randomUUID } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { type Clock, type Digest, isRollbookError, RollbookError } from "../base/index.ts";
import type { SealedBlob, SignHead } from "../contract/index.ts";
import {
  type Blob,
  BlobIndex,
  type BlobPlace,
  type BlobStore,
  checkKind,
  closedError,
  damageError,
  itemsOf,
  type ScanItem,
} from "./blob/index.ts";
import { isMissing, makeDirectory, withLock, writeAtomically } from "./disk/index.ts";
import { HeadCheck } from "./head/index.ts";
import {
  type BookPaths,
  bookFault,
  bookIdOf,
  bookPaths,
  encodeBook,
  type HeaderVisit,
  LARGE_BYTES,
  largePath,
  listPacks,
  openPackState,
  PACK_FOOTER_KIND,
  PACK_HEADER_KIND,
  PACK_LARGE_KIND,
  PackFiles,
  type PackName,
  type PackPlace,
  parseLargeEntry,
  type Recovery,
  readLarge,
  recoverBook,
  scanBook,
} from "./pack/index.ts";
import { type RemoteBook, remoteOf } from "./remote/index.ts";
import { Session } from "./session.ts";

export interface BookOptions {
  readonly clock: Clock;
  /** "write" (default) creates the book if it does not exist, and recovers the packs of dead writers. */
  readonly mode?: "write" | "read";
  /** At this size a pack is sealed and a new pack begins. */
  readonly packBytes?: number;
  /** Blobs of at least this size get separate files; at most 4 MiB. */
  readonly largeBytes?: number;
  /** Signs the heads of the book; called when the first head is due. Default: no heads are written. */
  readonly sign?: (() => SignHead | undefined) | undefined;
}

export interface Book extends BlobStore {
  readonly root: string;
  /** Identity of the book, independent of its path. Created with the book; a copy of the directory keeps it. */
  readonly id: string;
  /** Recovered packs of dead writers, found when this book was opened. */
  readonly recovered: readonly Recovery[];
  /** Reads a blob that was put through this object, after making it durable. Undefined for all other blobs, even if the
   *  book holds them. Opens no pack of another writer, so it is always fast. */
  getOwn(digest: Digest): Promise<Blob | undefined>;
  /** Writes a signed head over everything in the book, and makes it durable. Undefined without a key. */
  head(): Promise<SealedBlob | undefined>;
  /** Updates the working copy of a book in a bucket; does nothing for a book on disk. */
  update(): Promise<void>;
  /** Sets a lookup for single blobs, such as a catalog. Reading a few blobs then walks no pack. */
  lookUpBy(find: (digest: Digest) => PackPlace | undefined): void;
}

/** Above this number of single lookups, walking the headers of all packs once is faster. */
const FEW_LOOKUPS = 256;

export const PACK_BYTES = 1024 ** 3;

export async function openBook(root: string, options: BookOptions): Promise<Book> {
  return openBookOf(await remoteOf(root), root, options);
}

/** As openBook, with the bucket of the working copy; undefined for a book on disk. */
export async function openBookOf(
  remote: RemoteBook | undefined,
  root: string,
  options: BookOptions,
): Promise<Book> {
  const { clock, mode = "write", packBytes = PACK_BYTES, largeBytes = LARGE_BYTES, sign } = options;
  const paths = bookPaths(root);
  await remote?.pull();
  if (mode === "write") await createBook(paths, clock);
  if (mode === "write") await remote?.settleBook();
  const id = checkedId(paths);
  if (mode === "read") return new FsBook(paths, { id, recovered: [], remote });
  const recovered =
    remote === undefined
      ? await recoverBook(paths)
      : await remote.alone(() => recoverBook(paths, (pack) => remote.mayRecover(pack)));
  await remote?.pushForgotten();
  const limits = { packBytes, largeBytes: Math.min(largeBytes, LARGE_BYTES) };
  const session = await Session.begin(paths, { clock, sign, remote, ...limits });
  return new FsBook(paths, { id, recovered, remote, session });
}

async function createBook(paths: BookPaths, clock: Clock): Promise<void> {
  for (const directory of [paths.packs, paths.large, paths.tmp, paths.locks]) makeDirectory(directory);
  if (existsSync(paths.bookJson)) return;
  await withLock(paths.bookLock, () => {
    if (existsSync(paths.bookJson)) return;
    const book = encodeBook({ createdAtMs: clock.nowMs(), id: `book-${randomUUID()}` });
    writeAtomically(paths.bookJson, book, `${paths.tmp}/book.json`);
  });
}

/** Id of the book, after checking its book.json. */
function checkedId(paths: BookPaths): string {
  let bytes: Uint8Array;
  try {
    bytes = readFileSync(paths.bookJson);
  } catch (cause) {
    if (!isMissing(cause)) throw cause;
    const { root } = paths;
    throw new RollbookError(
      "no-book",
      { root },
      `${root} is not a book. Create one, or name another directory.`,
      { cause },
    );
  }
  const fault = bookFault(bytes);
  if (fault === undefined) return bookIdOf(bytes);
  // Without book.json the book cannot be read, so `verify` could not report more.
  throw new RollbookError(
    "bad-book",
    { file: paths.bookJson },
    `${paths.bookJson}: ${fault}. Restore the file from a copy of the book.`,
  );
}

/** A pack of another session, and the end of its indexed part. */
interface KnownPack {
  readonly id: string;
  readonly number: number;
  end: number;
  sealed: boolean;
}

/** Small blobs are read synchronously: a promise per step would take as long as the reading. */
type MaybeLater<T> = T | Promise<T>;

class FsBook implements Book {
  readonly root: string;
  readonly id: string;
  readonly recovered: readonly Recovery[];
  readonly #paths: BookPaths;
  readonly #session: Session | undefined;
  readonly #remote: RemoteBook | undefined;
  readonly #files: PackFiles;
  readonly #index = new BlobIndex();
  #packs: KnownPack[] = [];
  #find: ((digest: Digest) => PackPlace | undefined) | undefined;
  #lookups = 0;
  #closed = false;

  constructor(
    paths: BookPaths,
    {
      id,
      recovered,
      session,
      remote,
    }: { id: string; recovered: readonly Recovery[]; session?: Session; remote: RemoteBook | undefined },
  ) {
    this.root = paths.root;
    this.id = id;
    this.recovered = recovered;
    this.#paths = paths;
    this.#session = session;
    this.#remote = remote;
    this.#files = new PackFiles(paths);
  }

  put(kind: string, bytes: Uint8Array): Digest {
    checkKind(kind);
    return this.#writer().put(kind, bytes);
  }

  async flush(): Promise<void> {
    await this.#writer().flush();
  }

  async get(digest: Digest): Promise<Blob | undefined> {
    this.#refuseIfClosed();
    try {
      return await this.#getOne(digest);
    } catch (error) {
      if (!isRollbookError(error)) throw error;
      const copy = await this.#readCopy(digest);
      if (copy === undefined) throw error;
      return copy;
    }
  }

  async getOwn(digest: Digest): Promise<Blob | undefined> {
    this.#refuseIfClosed();
    if (this.#session?.placed.has(digest) !== true) return undefined;
    await this.#session.flush();
    return this.#readOwn(digest);
  }

  #readOwn(digest: Digest): MaybeLater<Blob | undefined> {
    const own = this.#session?.placed.get(digest);
    if (own === undefined) return undefined;
    this.#session!.drain();
    return this.#read(this.#session!.packId(own.file), own, digest);
  }

  async #getOne(digest: Digest): Promise<Blob | undefined> {
    const own = this.#readOwn(digest);
    if (own !== undefined) return await own;
    const place = this.#index.get(digest);
    const blob = place === undefined ? this.#lookUp(digest) : await this.#readIndexed(place, digest);
    if (blob !== undefined) return blob;
    // Since the last index refresh, another process may have written the blob, or gc may have moved it.
    this.#refresh();
    if (this.#remote !== undefined && !this.#index.has(digest)) await this.update();
    const found = this.#index.get(digest);
    return found === undefined ? undefined : this.#readIndexed(found, digest);
  }

  lookUpBy(find: (digest: Digest) => PackPlace | undefined): void {
    this.#find = find;
  }

  /** Used while no pack is indexed. A wrong or damaged place falls back to a search in the packs. */
  #lookUp(digest: Digest): Blob | undefined {
    if (this.#packs.length > 0 || this.#lookups >= FEW_LOOKUPS) return undefined;
    const entry = this.#find?.(digest);
    if (entry === undefined) return undefined;
    this.#lookups++;
    try {
      return this.#files.read(entry.pack, entry, digest);
    } catch (error) {
      if (isRollbookError(error)) return undefined;
      throw error;
    }
  }

  /** After damage: finds another intact copy in the packs. Walks all headers; damage is rare. */
  async #readCopy(digest: Digest): Promise<Blob | undefined> {
    this.#refresh();
    for (const pack of this.#packs) {
      const places: BlobPlace[] = [];
      this.#files.walk(pack.id, 0, ({ digest: found, offset, bytes }) => {
        if (found === digest) places.push({ file: pack.number, offset, bytes, large: false });
      });
      for (const place of places) {
        try {
          const blob = await this.#readIndexed(place, digest);
          if (blob === undefined) continue;
          this.#index.set(digest, place);
          return blob;
        } catch (error) {
          if (!isRollbookError(error)) throw error; // this copy is damaged too
        }
      }
    }
    return undefined;
  }

  async has(digest: Digest): Promise<boolean> {
    this.#refuseIfClosed();
    if (this.#session?.placed.has(digest) === true) return true;
    const place = this.#index.get(digest);
    if (place !== undefined && this.#files.isThere(this.#packs[place.file]!.id)) return true;
    this.#refresh();
    if (this.#remote !== undefined && !this.#index.has(digest)) await this.update();
    return this.#index.has(digest);
  }

  async update(): Promise<void> {
    if (this.#remote === undefined) return;
    await this.#remote.pull();
    this.#refresh();
  }

  scan(): AsyncIterable<ScanItem> {
    return itemsOf(this.scanRuns());
  }

  scanRuns(): AsyncIterable<Iterable<ScanItem>> {
    this.#refuseIfClosed();
    this.#session?.drain();
    return this.#scanAll();
  }

  async *#scanAll(): AsyncGenerator<Iterable<ScanItem>> {
    await this.#remote?.pull();
    const check = await HeadCheck.begin(this.#paths);
    yield* scanBook(this.#paths, check.isEmpty ? undefined : check);
    yield (await check.findings()).map((finding) => ({ type: "damage", finding }));
  }

  head(): Promise<SealedBlob | undefined> {
    const session = this.#writer();
    const others = listPacks(this.#paths)
      .filter((pack) => !pack.sealed && pack.session !== session.name)
      .flatMap(({ id }) => openPackState(this.#paths, id) ?? []);
    return session.head({ others });
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.#files.close();
    await this.#session?.close();
  }

  #readIndexed(place: BlobPlace, digest: Digest): MaybeLater<Blob | undefined> {
    return this.#read(this.#packs[place.file]!.id, place, digest);
  }

  /** Undefined if the pack or its large file is gone; damage is thrown. */
  #read(pack: string, place: BlobPlace, digest: Digest): MaybeLater<Blob | undefined> {
    const entry = this.#files.read(pack, place, place.large ? undefined : digest);
    return entry === undefined || !place.large ? entry : this.#readLarge(pack, entry, digest);
  }

  async #readLarge(pack: string, entry: Blob, digest: Digest): Promise<Blob | undefined> {
    const large = parseLargeEntry(entry.bytes)!;
    try {
      const bytes = await readLarge(this.#paths, pack, large);
      if (bytes instanceof Uint8Array) return { kind: large.kind, bytes };
      throw damageError(bytes);
    } catch (error) {
      if (!isMissing(error)) throw error;
      if (!existsSync(this.#paths.openPack(pack)) && !existsSync(this.#paths.sealedPack(pack)))
        return undefined;
      const at = { file: largePath(pack, large), offset: 0, length: large.bytes, expected: digest };
      throw damageError({ code: "missing-large", ...at, message: `the file of ${digest} is missing` });
    }
  }

  /** Indexes the additions of other sessions. Starts again if gc has removed a pack. */
  #refresh(): void {
    const listed = listPacks(this.#paths).filter((pack) => pack.session !== this.#session?.name);
    const here = new Set(listed.map((pack) => pack.id));
    // When another machine's pack is sealed, a new file replaces the open one. The file held open here does not grow.
    const isReplaced = ({ id, sealed }: KnownPack) => !sealed && !this.#files.isThere(id);
    if (this.#packs.some((pack) => !here.has(pack.id) || isReplaced(pack))) {
      this.#index.clear();
      this.#files.close();
      this.#packs = [];
    }
    const known = new Map(this.#packs.map((pack) => [pack.id, pack]));
    for (const name of listed) this.#indexPack(name, known.get(name.id));
  }

  #indexPack(name: PackName, known: KnownPack | undefined): void {
    if (known?.sealed === true) return;
    const pack = known ?? { id: name.id, number: this.#packs.length, end: 0, sealed: false };
    if (known === undefined) this.#packs.push(pack);
    // The pack was removed between listing and opening: the next refresh starts again.
    pack.end = this.#files.walk(pack.id, pack.end, (entry) => this.#indexEntry(pack, entry)) ?? pack.end;
    pack.sealed = name.sealed;
  }

  #indexEntry(pack: KnownPack, entry: HeaderVisit): void {
    if (entry.kind === PACK_HEADER_KIND || entry.kind === PACK_FOOTER_KIND) return;
    const large = entry.kind === PACK_LARGE_KIND;
    const digest = large ? this.#largeDigest(pack.id, entry) : entry.digest;
    if (digest === undefined) return;
    this.#index.set(digest, { file: pack.number, offset: entry.offset, bytes: entry.bytes, large });
  }

  /** Digest that a stand-in names; undefined if the stand-in is damaged, which `scan` reports. */
  #largeDigest(pack: string, entry: HeaderVisit): Digest | undefined {
    try {
      const standIn = this.#files.read(pack, entry, entry.digest);
      return standIn === undefined ? undefined : parseLargeEntry(standIn.bytes)?.digest;
    } catch (error) {
      if (isRollbookError(error)) return undefined;
      throw error;
    }
  }

  #writer(): Session {
    this.#refuseIfClosed();
    if (this.#session !== undefined) return this.#session;
    const { root } = this;
    throw new RollbookError("read-only", { root }, `${root} was opened to read. Open it to write.`);
  }

  #refuseIfClosed(): void {
    if (this.#closed) throw closedError();
  }
}
