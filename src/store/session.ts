/** One writer's use of a book: the session holds its lock, fills its own packs, and remembers what it put.
 *  In: blobs. Out: packs. No other process changes the packs of a session while its lock is held. Therefore the session
 *  may skip blobs that it has already put, and only those. Group commit: an fsync starts when the last one ends. With a
 *  key it writes a signed head of the book when it ends, when a pack is full, and once a second while it writes. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { hostname } from "node:os";
import { type Clock, type Digest, digestBytes, digestJson, RollbookError, reasonOf } from "../base/index.ts";
import type { SealedBlob, SignHead } from "../contract/index.ts";
import { BlobIndex, type BlobPlace } from "./blob/index.ts";
import { bootId, GroupCommit, type Lock, tryLock, unlinkIfThere, withLock } from "./disk/index.ts";
import { type HeadOptions, HeadWriter } from "./head/index.ts";
import {
  type BookPaths,
  jsonBytes,
  type LargeEntry,
  linkLarge,
  PACK_LARGE_KIND,
  type PackHeader,
  PackWriter,
  packId,
  sessionName,
  syncLarge,
  syncLargeNow,
  writeLarge,
} from "./pack/index.ts";

import type { RemoteBook, RemoteStay } from "./remote/index.ts";

interface SessionOptions {
  readonly clock: Clock;
  readonly packBytes: number;
  readonly largeBytes: number;
  /** Called when the first head is due. Without a key there are no heads. */
  readonly sign?: (() => SignHead | undefined) | undefined;
  /** The bucket of the book, if it has one: flushed bytes are also in the bucket. */
  readonly remote?: RemoteBook | undefined;
}

/** A flush of at least this many bytes to a bucket seals the pack, which is then uploaded once. Fewer bytes go up as a
 *  part, and again with the pack. */
const WHOLE_BYTES = 8 * 1024 * 1024;

/** Longest time that written bytes are without a signed head. */
const HEAD_EVERY_MS = 1000;

export class Session {
  readonly name: string;
  /** Place of each blob of this session; `file` is the number of the pack. */
  readonly placed = new BlobIndex();
  readonly #paths: BookPaths;
  readonly #lock: Lock;
  readonly #origin: Omit<PackHeader, "pack">;
  readonly #options: SessionOptions;
  #pack: PackWriter | undefined;
  #packs = 0;
  #failure: unknown;
  readonly #commits = new GroupCommit({ commit: () => this.#syncPack(), failsForGood: true });
  /** Null: there is no key. */
  #heads: HeadWriter | null | undefined;
  #headTimer: NodeJS.Timeout | undefined;
  /** True if something was put since the last head. */
  #isAhead = false;
  /** Resolves when the head in progress is made. */
  #making: Promise<unknown> = Promise.resolve();
  #stay: RemoteStay | undefined;
  /** The pack whose parts are in the bucket, and their end. `#unpushed`: sealed packs that are not in the bucket. */
  #pushed = { pack: "", end: 0 };
  #unpushed: string[] = [];
  /** Large files that are not durable yet. They become durable before their stand-ins are written, so no crash leaves a
   *  stand-in without its file. */
  #unsynced: string[] = [];
  /** Number of flush calls in progress. */
  #flushing = 0;

  private constructor(
    paths: BookPaths,
    { name, lock }: { name: string; lock: Lock },
    options: SessionOptions,
  ) {
    this.name = name;
    this.#paths = paths;
    this.#lock = lock;
    this.#options = options;
    this.#origin = { ...origin(), startedAt: new Date(options.clock.nowMs()).toISOString() };
  }

  static async begin(paths: BookPaths, options: SessionOptions): Promise<Session> {
    // Lock files are created and removed only under the book's lock, so that no process removes one that is being
    // taken.
    const session = await withLock(
      paths.bookLock,
      () => new Session(paths, takeName(paths, options.clock), options),
    );
    try {
      session.#stay = await options.remote?.begin(session.name);
    } catch (error) {
      await session.#unlock();
      throw error;
    }
    return session;
  }

  put(kind: string, bytes: Uint8Array): Digest {
    this.#refuseIfFailed();
    try {
      if (bytes.length >= this.#options.largeBytes) return this.#putLarge(kind, bytes);
      const pack = this.#packWithRoom();
      const { digest, place } = pack.append({ kind, payload: bytes }, (known) => this.placed.has(known));
      if (place !== undefined) this.#place(digest, { file: this.#packs, ...place, large: false });
      return digest;
    } catch (error) {
      this.#failure = error;
      throw error;
    }
  }

  /** Adds a large file that is elsewhere in the book, without copying it. */
  adoptLarge(entry: LargeEntry, from: string): void {
    this.#refuseIfFailed();
    if (this.placed.has(entry.digest)) return;
    try {
      const pack = this.#packWithRoom();
      linkLarge(this.#paths, pack.id, { entry, from });
      this.#standIn(pack, entry);
    } catch (error) {
      this.#failure = error;
      throw error;
    }
  }

  /** Passes staged bytes to the operating system, so that reads of the files see them. */
  drain(): void {
    this.#refuseIfFailed();
    this.#pack?.drain();
  }

  async flush(): Promise<void> {
    if (this.#failure !== undefined) throw this.#failed();
    this.#flushing++;
    try {
      await this.#commits.flush();
    } finally {
      this.#flushing--;
    }
  }

  /** Writes a signed head now and makes it durable; undefined without a key. */
  head(options: HeadOptions = {}): Promise<SealedBlob | undefined> {
    const made = this.#making.then(async () => {
      const heads = this.#headWriter();
      if (heads === undefined) return undefined;
      const head = await this.#writeHead(heads, options);
      await this.flush();
      return head;
    });
    // One after the other: each head references the previous one.
    this.#making = made.catch(() => {});
    return made;
  }

  /** Seals the pack, so that it needs no recovery. A failed session leaves its pack to the next writer. `whole` is
   *  called when all packs are in their final place, before other processes see that the session has ended. */
  async close(
    head: Pick<HeadOptions, "replaced" | "folded" | "others"> = {},
    whole?: () => Promise<void>,
  ): Promise<void> {
    clearTimeout(this.#headTimer);
    try {
      if (this.#failure === undefined) {
        await this.#making;
        await this.#settle();
        const heads = this.#isAhead || (head.replaced ?? []).length > 0 ? this.#headWriter() : this.#heads;
        if (heads === undefined || heads === null) this.#pack?.seal();
        else await withLock(this.#paths.bookLock, () => this.#sealWithHead(heads, head));
        await this.#pushLast();
        await whole?.();
        await this.#stay?.end();
      } else this.#pack?.abandon();
    } finally {
      // A failed session must not appear alive, so that others can recover its pack.
      this.#stay?.stop();
      await this.#unlock();
    }
  }

  /** The lock file of a failed session stays: it leads the next writer to the packs. */
  #unlock(): Promise<void> {
    return withLock(this.#paths.bookLock, () => {
      this.#lock.release();
      if (this.#failure === undefined) unlinkIfThere(this.#paths.sessionLock(this.name));
    });
  }

  packId(number: number): string {
    return packId(this.name, number);
  }

  #putLarge(kind: string, bytes: Uint8Array): Digest {
    const digest = digestBytes(kind, bytes);
    if (this.placed.has(digest)) return digest;
    const pack = this.#packWithRoom();
    const entry = { digest, kind, bytes: bytes.length };
    this.#unsynced.push(writeLarge(this.#paths, pack.id, { entry, bytes }));
    this.#standIn(pack, entry);
    return digest;
  }

  #standIn(pack: PackWriter, entry: LargeEntry): void {
    const { place } = pack.append({ kind: PACK_LARGE_KIND, payload: jsonBytes(entry) });
    this.#place(entry.digest, { file: this.#packs, ...place!, large: true });
  }

  #place(digest: Digest, place: BlobPlace): void {
    this.placed.set(digest, place);
    this.#commits.add();
    this.#isAhead = true;
    this.#headSoon();
  }

  /** Runs in the background: no writer waits for it. A process that ends does not wait for it either; it closes its
   *  session. */
  #headSoon(waitMs = HEAD_EVERY_MS): void {
    if (this.#headTimer !== undefined || this.#heads === null || this.#options.sign === undefined) return;
    this.#headTimer = setTimeout(() => {
      this.#headTimer = undefined;
      // A failure here also fails the next flush.
      if (this.#isAhead && this.#failure === undefined) this.head().catch(() => {});
    }, waitMs);
    this.#headTimer.unref();
  }

  async #sealWithHead(heads: HeadWriter, head: HeadOptions): Promise<void> {
    if (this.#isAhead || (head.replaced ?? []).length > 0 || heads.isBehind)
      await this.#writeHead(heads, { ...head, joins: true });
    this.#pack?.seal();
    heads.leave();
  }

  #headWriter(): HeadWriter | undefined {
    if (this.#heads === undefined) {
      const { clock, sign } = this.#options;
      const found = sign?.();
      this.#heads = found === undefined ? null : new HeadWriter(this.#paths, { clock, sign: found });
    }
    return this.#heads ?? undefined;
  }

  async #writeHead(heads: HeadWriter, options: HeadOptions): Promise<SealedBlob> {
    const { state } = this.#packWithRoom();
    const covered = this.placed.size;
    const head = await heads.make(state, options);
    this.put(head.kind, head.bytes);
    // Another thread may have signed the head, and more may have been put meanwhile.
    this.#isAhead = this.placed.size > covered + 1;
    if (this.#isAhead) return head;
    clearTimeout(this.#headTimer);
    this.#headTimer = undefined;
    return head;
  }

  /** Called before the last pack is sealed. With a bucket, pending bytes go up with the pack, unless a flush waits for
   *  them. */
  async #settle(): Promise<void> {
    if (this.#options.remote === undefined || this.#flushing > 0) return this.flush();
    this.#refuseIfFailed();
    try {
      await this.#syncLarge();
      this.#pack?.drain();
      await this.#pack?.sync();
    } catch (error) {
      this.#failure = error;
      throw error;
    }
  }

  #sealPack(pack: PackWriter): void {
    pack.seal();
    this.#unpushed.push(pack.id);
    this.#pack = undefined;
    clearTimeout(this.#headTimer);
    this.#headTimer = undefined;
    this.#headSoon(0);
  }

  #packWithRoom(): PackWriter {
    if (this.#pack !== undefined && this.#pack.size >= this.#options.packBytes) this.#sealPack(this.#pack);
    if (this.#pack === undefined) {
      this.#packs++;
      const header = { ...this.#origin, pack: this.packId(this.#packs) };
      this.#pack = new PackWriter(this.#paths, header, () =>
        syncLargeNow(this.#paths, this.#unsynced.splice(0)),
      );
    }
    return this.#pack;
  }

  async #syncPack(): Promise<void> {
    try {
      // Large files may be in the bucket before an entry names them.
      await Promise.all([this.#syncLarge(), this.#pushLarge()]);
      const pack = this.#pack;
      pack?.drain();
      const end = pack?.size ?? 0;
      await pack?.sync();
      // Unless the pack became full meanwhile and is sealed.
      if (pack !== undefined && pack === this.#pack && this.#isBulk(pack.id, end)) this.#sealPack(pack);
      const sealed = this.#unpushed.splice(0);
      await this.#push(sealed.includes(pack?.id ?? "") ? undefined : pack?.id, { end, sealed });
    } catch (error) {
      // After a failed fsync the kernel may have dropped the pages, so this session accepts nothing more.
      this.#failure = error;
      throw error;
    }
  }

  async #syncLarge(): Promise<void> {
    const files = new Set(this.#unsynced);
    await syncLarge(this.#paths, [...files]);
    // More files may have come meanwhile, or a full pack may have synced them.
    this.#unsynced = this.#unsynced.filter((file) => !files.has(file));
  }

  async #pushLarge(): Promise<void> {
    if (this.#pack !== undefined) await this.#options.remote?.uploads.pushLarge(this.#pack.id);
  }

  async #push(
    pack: string | undefined,
    { end, sealed }: { end: number; sealed: readonly string[] },
  ): Promise<void> {
    const { remote } = this.#options;
    if (remote === undefined) return;
    for (const id of sealed) await remote.uploads.pushPack(id, { isLive: true });
    if (pack === undefined) return;
    const from = this.#pushedEnd(pack);
    if (end <= from) return;
    // A stand-in must not be in the bucket before its large file.
    await remote.uploads.pushLarge(pack);
    await remote.uploads.pushPart(pack, from, end);
    this.#pushed = { pack, end };
  }

  #pushedEnd(pack: string): number {
    return this.#pushed.pack === pack ? this.#pushed.end : 0;
  }

  #isBulk(pack: string, end: number): boolean {
    return this.#options.remote !== undefined && end - this.#pushedEnd(pack) >= WHOLE_BYTES;
  }

  async #pushLast(): Promise<void> {
    const { remote } = this.#options;
    if (remote === undefined) return;
    for (const id of [...this.#unpushed.splice(0), ...(this.#pack === undefined ? [] : [this.#pack.id])])
      await remote.uploads.pushPack(id, { isLive: true });
  }

  #refuseIfFailed(): void {
    if (this.#failure !== undefined) throw this.#failed();
  }

  #failed(): RollbookError {
    return new RollbookError(
      "session-failed",
      { session: this.name },
      `an earlier write of this session failed: ${reasonOf(this.#failure).replace(/\.?$/, ".")} Close the book, remove the cause, open it again.`,
      { cause: this.#failure },
    );
  }
}

/** A new name, with its lock taken. Names are never reused, even with a manual clock: an index may still know the packs
 *  of a session that gc has removed. */
function takeName(paths: BookPaths, clock: Clock): { name: string; lock: Lock } {
  const startedAtMs = clock.nowMs();
  for (;;) {
    const moment = String(process.hrtime.bigint());
    const name = sessionName(startedAtMs, digestJson("rollbook.session.v1", { ...origin(), moment }));
    const path = paths.sessionLock(name);
    if (existsSync(path) || readdirSync(paths.packs).some((file) => file.startsWith(name))) continue;
    const lock = tryLock(path);
    if (lock !== undefined) return { name, lock };
  }
}

/** Identity of this process: for people who inspect a pack, and to keep session names distinct. */
function origin(): { host: string; pid: number; processStartTicks?: number; bootId?: string } {
  const base = { host: hostname(), pid: process.pid };
  const boot = bootId();
  if (boot === undefined) return base; // No /proc: not Linux.
  const stat = readFileSync(`/proc/${process.pid}/stat`, "latin1");
  // The command in field 2 may hold spaces: count from its closing bracket. Field 22 is the start time.
  const processStartTicks = Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19]);
  return { ...base, processStartTicks, bootId: boot };
}
