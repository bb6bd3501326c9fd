/** A book in a bucket, with its working copy on this machine: a directory that is a book itself.
 *  Down: sealed packs, large files, and the parts of packs that other machines write now. Up: what a session of this machine
 *  flushed, as parts, and each pack when it is sealed. Packs and parts never change, and every write is conditional:
 *  of two writers of one key one fails, so nothing is lost or doubled. The catalog is made from the working copy. */
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { join } from "node:path";
import { threadId } from "node:worker_threads";
import { RollbookError } from "../../base/index.ts";
import { isMissing, makeDirectory, unlinkIfThere, writeAtomically } from "../disk/index.ts";
import {
  type BookPaths,
  bookFault,
  bookPaths,
  footerOf,
  parseLargeName,
  parsePackName,
} from "../pack/index.ts";
import type { Bucket, BucketObject } from "./bucket.ts";
import { unconditional } from "./conditions.ts";
import { Incoming, sizeOf } from "./incoming.ts";
import {
  BOOK_KEY,
  LARGE,
  PACKS,
  PARTS,
  packKey,
  parsePackKey,
  parsePartKey,
  partKey,
  SESSIONS,
  sessionKey,
} from "./remote-keys.ts";

/** A session that has not been heard of for so long is dead: its machine or its network is. */
const SILENT_MS = 60_000;
const BEAT_MS = 15_000;

/** Large files that go up at a time: each is in memory meanwhile. */
const PUSHED_AT_ONCE = 4;

/** The signs of life of a session. */
export interface RemoteStay {
  /** Gives none any more; other machines may take over what is in the bucket after a minute. */
  stop(): void;
  end(): Promise<void>;
}

export class RemoteBook {
  readonly bucket: Bucket;
  readonly #paths: BookPaths;
  readonly #incoming: Incoming;
  readonly #pushedLarge = new Set<string>();
  #pulling: Promise<void> | undefined;
  #queued: Promise<void> | undefined;
  /** Whether the bucket and the working copy were seen to be the same book. */
  #isAgreed = false;

  constructor(bucket: Bucket, root: string) {
    this.bucket = bucket;
    this.#paths = bookPaths(root);
    this.#incoming = new Incoming(bucket, this.#paths);
  }

  /** Brings down everything that was acknowledged before this call. Calls that come together share one pass. */
  pull(): Promise<void> {
    if (this.#pulling === undefined) {
      this.#pulling = this.#pullOnce().finally(() => {
        this.#pulling = undefined;
      });
      return this.#pulling;
    }
    // The pass under way may have listed before the caller's record was written: another one follows it.
    this.#queued ??= this.#pulling
      .catch(() => {})
      .then(() => {
        this.#queued = undefined;
        return this.pull();
      });
    return this.#queued;
  }

  /** Sessions of other machines that wrote a sign of life lately. */
  async liveSessions(): Promise<ReadonlySet<string>> {
    const nowMs = await this.bucket.nowMs();
    const live = new Set<string>();
    for await (const { key, modifiedMs } of this.bucket.list(SESSIONS))
      if (nowMs - modifiedMs < SILENT_MS) live.add(key.slice(SESSIONS.length));
    return live;
  }

  /** Runs `work` while no other process of this machine brings down, recovers or replaces packs. */
  alone<T>(work: () => Promise<T>): Promise<T> {
    return this.#incoming.alone(work);
  }

  /** The book.json of the bucket, or this one, if the bucket has none yet. Call before anything is written. */
  async settleBook(): Promise<void> {
    const own = readFileSync(this.#paths.bookJson);
    if (!(await this.bucket.putNew(BOOK_KEY, own))) this.#agreeOn(await this.bucket.get(BOOK_KEY));
    else if (await this.bucket.putNew(BOOK_KEY, own)) throw unconditional(this.bucket.url, "If-None-Match");
  }

  /** Packs that the bucket lacks: a crash of this machine kept them from going up, or they were removed there. */
  async pushForgotten(): Promise<void> {
    const there = new Set<string>();
    for await (const { key } of this.bucket.list(PACKS)) there.add(parsePackKey(key) ?? "");
    for (const id of this.#localPacks()) if (!there.has(id)) await this.pushPack(id);
    // A crash between the upload of a pack and the removal of its parts leaves them.
    const left: string[] = [];
    for await (const { key, bytes } of this.bucket.list(PARTS))
      if (bytes > 0 && there.has(parsePartKey(key)?.id ?? "")) left.push(key);
    await this.bucket.delete(left);
  }

  /** Uploads a sealed pack and takes its parts away. If the bucket has the pack already, that one counts; a session that
   *  has put more into its own (`isLive`) hears of it. */
  async pushPack(id: string, { isLive = false }: { isLive?: boolean } = {}): Promise<void> {
    if (!existsSync(this.#paths.sealedPack(id))) return; // it held nothing and was removed
    await this.pushLarge(id);
    if (!(await this.bucket.putNewFile(packKey(id), this.#paths.sealedPack(id))))
      await this.alone(() => this.#takeOver(id, isLive));
    const keys: string[] = [];
    // An empty part closes the chain: it stays, so that a writer that was taken for dead cannot go on.
    for await (const { key, bytes } of this.bucket.list(`${PARTS}${id}/`)) if (bytes > 0) keys.push(key);
    if (keys.length > 0) await this.bucket.delete(keys);
  }

  /** The pack of the bucket in place of the one that was sealed here. Usually they are the same: the reply to the upload was
   *  lost, or another process of this machine was first. */
  async #takeOver(id: string, isLive: boolean): Promise<void> {
    const own = footerOf(this.#paths, id);
    if (!(await this.#incoming.fetchPack(id)))
      throw new RollbookError(
        "bucket-failed",
        { url: this.bucket.url, key: packKey(id) },
        `${this.bucket.url}/${packKey(id)}: the server says that it exists, and does not give it. Its parts are kept; open the book again.`,
      );
    if (isLive && footerOf(this.#paths, id)?.chain !== own?.chain) throw this.#replaced(id);
  }

  async pushLarge(id: string): Promise<void> {
    const files = this.#largeFilesOf(id)
      .filter((file) => !this.#pushedLarge.has(file))
      .values();
    const push = async () => {
      for (const file of files) {
        await this.bucket.putNewFile(`${LARGE}${file}`, join(this.#paths.large, file));
        this.#pushedLarge.add(file);
      }
    };
    await Promise.all(Array.from({ length: PUSHED_AT_ONCE }, push));
  }

  /** Bytes of an open pack from `from` to `to`. Refused if another machine took this session for dead. */
  async pushPart(id: string, from: number, to: number): Promise<void> {
    const bytes = await this.#readPart(id, from, to);
    const key = partKey(id, from);
    if (await this.bucket.putNew(key, bytes)) return;
    // A retry of a request that had succeeded finds its own bytes.
    const there = await this.bucket.get(key);
    if (there !== undefined && Buffer.compare(there, bytes) === 0) return;
    throw this.#replaced(id);
  }

  #replaced(pack: string): RollbookError {
    return new RollbookError(
      "session-replaced",
      { pack, url: this.bucket.url },
      "another machine took this session for dead, because it was silent for a minute, and sealed its pack. Acknowledged records are safe; open the book again and repeat the rest.",
    );
  }

  /** Whether this machine may recover an open pack: its session is of this machine, or silent. Closes its chain of parts, so
   *  that the session cannot go on if it lives after all, and brings down what it had acknowledged. Call under `alone`. */
  async mayRecover(id: string): Promise<boolean> {
    const session = sessionOf(id);
    if (!existsSync(this.#ownFile(session)) && (await this.liveSessions()).has(session)) return false;
    const parts: BucketObject[] = [];
    for await (const part of this.bucket.list(`${PARTS}${id}/`)) parts.push(part);
    // In the order of their keys, which is that of the bytes.
    const last = parts.at(-1);
    const end = last === undefined ? 0 : parsePartKey(last.key)!.offset + last.bytes;
    const closing = parts.find(({ bytes }) => bytes === 0);
    if (closing === undefined) {
      if (!(await this.bucket.putNew(partKey(id, end), new Uint8Array()))) return false;
    } // Closed by a machine that may be at work on it; if it died meanwhile, another machine goes on.
    else if ((await this.bucket.nowMs()) - closing.modifiedMs < SILENT_MS) return false;
    if (await this.#incoming.fetchPack(id)) return false; // it has been recovered elsewhere
    // The last pull may be older than the last part: without this, what was acknowledged since would be cut off.
    await this.#incoming.pullLarge(`${LARGE}${id}.`, (pack) => pack === id);
    await this.#incoming.pullParts(id, parts);
    return (sizeOf(this.#paths.openPack(id)) ?? 0) >= end;
  }

  /** Gives a sign of life now and then, until `end`. */
  async begin(session: string): Promise<RemoteStay> {
    makeDirectory(join(this.#paths.root, "remote"));
    writeFileSync(this.#ownFile(session), "", { mode: 0o600 });
    await this.beat(session);
    const timer = setInterval(() => void this.beat(session).catch(() => {}), BEAT_MS);
    timer.unref();
    const stop = () => clearInterval(timer);
    return {
      stop,
      end: async () => {
        stop();
        await this.bucket.delete([sessionKey(session)]);
        unlinkIfThere(this.#ownFile(session));
      },
    };
  }

  beat(session: string): Promise<void> {
    return this.bucket.replace(sessionKey(session), Buffer.from(`${new Date().toISOString()}\n`));
  }

  async #pullOnce(): Promise<void> {
    const { packs: packsHere, large, tmp, locks } = this.#paths;
    for (const each of [packsHere, large, tmp, locks]) makeDirectory(each);
    const book = this.#isAgreed ? undefined : await this.bucket.get(BOOK_KEY);
    // Parts first: a pack that is sealed meanwhile is then in the list of packs, or still in its parts.
    const parts = await this.#listParts();
    const packs = new Map<string, number>();
    for await (const { key, bytes } of this.bucket.list(PACKS)) {
      const id = parsePackKey(key);
      if (id !== undefined) packs.set(id, bytes);
    }
    await this.alone(async () => {
      this.#agreeOn(book);
      await this.#incoming.pullLarge(LARGE, (pack) => packs.has(pack) || parts.has(pack));
      // Of another size: it was sealed on both sides, or a power loss cut it. The pack of the bucket counts.
      for (const [id, bytes] of packs)
        if (sizeOf(this.#paths.sealedPack(id)) !== bytes) await this.#incoming.fetchPack(id);
      // A session of this machine has everything in its own file. Asked before anything else: it may be sealed meanwhile.
      for (const [id, found] of parts)
        if (!packs.has(id) && !existsSync(this.#ownFile(sessionOf(id))))
          await this.#incoming.pullParts(id, found);
    });
  }

  /** Takes over the book.json of the bucket, unless the working copy is of another book. */
  #agreeOn(there: Uint8Array | undefined): void {
    if (there === undefined) return;
    const fault = bookFault(there);
    if (fault !== undefined)
      throw new RollbookError(
        "bad-book",
        { url: this.bucket.url },
        `${this.bucket.url}/${BOOK_KEY}: ${fault}.`,
      );
    const isHere = existsSync(this.#paths.bookJson);
    this.#isAgreed = true;
    if (isHere && Buffer.compare(there, readFileSync(this.#paths.bookJson)) === 0) return;
    if (isHere && this.#localPacks().length > 0)
      throw new RollbookError(
        "other-book",
        { url: this.bucket.url, root: this.#paths.root },
        `${this.bucket.url} holds another book than its working copy ${this.#paths.root}. Move that directory away and try again.`,
      );
    // There was none, or two machines made the book at the same time, and the other one was first.
    writeAtomically(
      this.#paths.bookJson,
      there,
      join(this.#paths.tmp, `book.json.${process.pid}-${threadId}`),
    );
  }

  async #listParts(): Promise<Map<string, BucketObject[]>> {
    const parts = new Map<string, BucketObject[]>();
    for await (const object of this.bucket.list(PARTS)) {
      const part = parsePartKey(object.key);
      if (part === undefined) continue;
      const of = parts.get(part.id);
      if (of === undefined) parts.set(part.id, [object]);
      else of.push(object);
    }
    return parts;
  }

  async #readPart(id: string, from: number, to: number): Promise<Uint8Array> {
    const file = await this.#openEither(id);
    try {
      const bytes = Buffer.allocUnsafeSlow(to - from);
      for (let read = 0; read < bytes.length; ) {
        const { bytesRead } = await file.read(bytes, read, bytes.length - read, from + read);
        if (bytesRead === 0)
          throw new RollbookError(
            "short-pack",
            { pack: id, from, to },
            `pack ${id} ends before byte ${to}, which was written. Check the disk, then open the book again.`,
          );
        read += bytesRead;
      }
      return bytes;
    } finally {
      await file.close();
    }
  }

  /** The pack may be full, and sealed, while a flush of its earlier bytes is under way. */
  async #openEither(id: string): Promise<FileHandle> {
    try {
      return await open(this.#paths.openPack(id), "r");
    } catch (error) {
      if (!isMissing(error)) throw error;
      return await open(this.#paths.sealedPack(id), "r");
    }
  }

  #localPacks(): string[] {
    return readdirSync(this.#paths.packs).flatMap((file) => {
      const pack = parsePackName(file);
      return pack?.sealed === true ? [pack.id] : [];
    });
  }

  #largeFilesOf(id: string): string[] {
    return readdirSync(this.#paths.large).filter((file) => parseLargeName(file)?.pack === id);
  }

  /** An empty file for each session that this machine began and did not end. */
  #ownFile(session: string): string {
    return join(this.#paths.root, "remote", `${session}.own`);
  }
}

function sessionOf(pack: string): string {
  return pack.slice(0, pack.lastIndexOf("-"));
}
