/** A book in a bucket, with its working copy on this machine: a directory that is itself a book. Down: sealed packs,
 *  large files, and parts of packs that other machines are writing. Up: flushed bytes of this machine's sessions, as
 *  parts, and each pack when it is sealed. Packs and parts never change, and every write is conditional. If two writers
 *  write one key, one fails, so nothing is lost or doubled. The catalog is made from the working copy. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { threadId } from "node:worker_threads";
import { RollbookError } from "../../base/index.ts";
import { makeDirectory, syncDirectory, unlinkIfThere, writeAtomically } from "../disk/index.ts";
import { forgetHeadIn } from "../head/index.ts";
import {
  type BookPaths,
  bookFault,
  bookPaths,
  footerOf,
  parseLargeName,
  parsePackName,
  type RecoveryRule,
} from "../pack/index.ts";
import type { Bucket, BucketObject } from "./bucket.ts";
import { unconditional } from "./conditions.ts";
import { Incoming, sizeOf } from "./incoming.ts";
import { PackUploads, sessionReplaced } from "./pack-uploads.ts";
import {
  BOOK_KEY,
  GC_KEY,
  LARGE,
  PACKS,
  PARTS,
  packKey,
  parsePackKey,
  parsePartKey,
  partKey,
  sessionOf,
} from "./remote-keys.ts";
import { RemoteSessions, type RemoteStay, SILENT_MS } from "./remote-sessions.ts";
import { RemovedPacks } from "./removed-packs.ts";

/** A listing is outdated if gc ran since; the pull is then repeated at most so many times. */
const MOST_PULLS = 20;

export class RemoteBook {
  readonly bucket: Bucket;
  /** Packs that gc removed from the bucket. */
  readonly removed: RemovedPacks;
  readonly uploads: PackUploads;
  readonly #sessions: RemoteSessions;
  readonly #paths: BookPaths;
  readonly #incoming: Incoming;
  #pulling: Promise<void> | undefined;
  #queued: Promise<void> | undefined;
  /** True if bucket and working copy were found to be the same book. */
  #isAgreed = false;

  constructor(bucket: Bucket, root: string) {
    this.bucket = bucket;
    this.#paths = bookPaths(root);
    this.#incoming = new Incoming(bucket, this.#paths);
    this.removed = new RemovedPacks(bucket);
    const takeOver = (id: string, isLive: boolean) => this.alone(() => this.#takeOver(id, isLive));
    this.uploads = new PackUploads(bucket, this.#paths, takeOver);
    this.#sessions = new RemoteSessions(bucket, this.#paths);
  }

  /** Downloads everything that was acknowledged before this call. Concurrent calls share one pass. */
  pull(): Promise<void> {
    if (this.#pulling === undefined) {
      this.#pulling = this.#pullOnce().finally(() => {
        this.#pulling = undefined;
      });
      return this.#pulling;
    }
    // The pass in progress may have listed before the caller's record was written, so another pass follows.
    this.#queued ??= this.#pulling
      .catch(() => {})
      .then(() => {
        this.#queued = undefined;
        return this.pull();
      });
    return this.#queued;
  }

  /** Runs `work` while no other process of this machine downloads, recovers or replaces packs. */
  alone<T>(work: () => Promise<T>): Promise<T> {
    return this.#incoming.alone(work);
  }

  /** Uses the book.json of the bucket, or uploads this one if the bucket has none. Call before anything is written. */
  async settleBook(): Promise<void> {
    const own = readFileSync(this.#paths.bookJson);
    if (!(await this.bucket.putNew(BOOK_KEY, own))) this.#agreeOn(await this.bucket.get(BOOK_KEY));
    else if (await this.bucket.putNew(BOOK_KEY, own)) throw unconditional(this.bucket.url, "If-None-Match");
  }

  /** Uploads packs that the bucket lacks: a crash of this machine prevented the upload, or they were lost there. */
  async pushForgotten(): Promise<void> {
    const { packs: there } = await this.#listPacks();
    // After the listing: `removed` names any pack that gc removed meanwhile.
    const removed = await this.removed.names();
    for (const id of this.#localPacks())
      if (!there.has(id) && !removed.has(id)) await this.uploads.pushPack(id);
    // A crash between the upload of a pack and the deletion of its parts leaves the parts.
    const left: string[] = [];
    for await (const { key, bytes } of this.bucket.list(PARTS)) {
      const id = parsePartKey(key)?.id ?? "";
      if (bytes > 0 && (there.has(id) || removed.has(id))) left.push(key);
    }
    await this.bucket.delete(left);
  }

  /** Replaces the pack that was sealed here by the pack of the bucket. Usually they are equal: the reply to the upload
   *  was lost, or another process of this machine was first. */
  async #takeOver(id: string, isLive: boolean): Promise<void> {
    const own = footerOf(this.#paths, id);
    if (!(await this.#incoming.fetchPack(id)))
      throw new RollbookError(
        "bucket-failed",
        { url: this.bucket.url, key: packKey(id) },
        `${this.bucket.url}/${packKey(id)}: the server says that it exists, and does not give it. Its parts are kept; open the book again.`,
      );
    if (isLive && footerOf(this.#paths, id)?.chain !== own?.chain) throw sessionReplaced(id, this.bucket.url);
  }

  /** Decides if this machine may recover an open pack: its session is of this machine, or silent. Closes the chain of
   *  parts, so that the session cannot continue if it is still alive. Downloads everything that the session had
   *  acknowledged. Call under `alone`. */
  async mayRecover(id: string): Promise<RecoveryRule> {
    const session = sessionOf(id);
    if (!this.#sessions.isOwn(session) && (await this.#sessions.live()).has(session)) return "leave";
    const parts: BucketObject[] = [];
    for await (const part of this.bucket.list(`${PARTS}${id}/`)) parts.push(part);
    // Listed by key, which is the order of the bytes.
    const last = parts.at(-1);
    const end = last === undefined ? 0 : parsePartKey(last.key)!.offset + last.bytes;
    const closing = parts.find(({ bytes }) => bytes === 0);
    if (parts.length === 0) {
      // Nothing was acknowledged, or the pack is sealed. An empty part at the start would mean that the session was
      // ended.
    } else if (closing === undefined) {
      if (!(await this.bucket.putNew(partKey(id, end), new Uint8Array()))) return "leave";
    } // Closed by a machine that may be working on it. If that machine died, another machine continues.
    else if ((await this.bucket.nowMs()) - closing.modifiedMs < SILENT_MS) return "leave";
    if (await this.#incoming.fetchPack(id)) return "leave"; // recovered elsewhere
    // The last pull may be older than the last part: otherwise newer acknowledged bytes would be cut off.
    await this.#incoming.pullLarge(`${LARGE}${id}.`, (pack) => pack === id);
    await this.#incoming.pullParts(id, parts);
    if ((sizeOf(this.#paths.openPack(id)) ?? 0) < end) return "leave";
    // A pack that has begun is sealed even if it is empty: then its session cannot use the name.
    return parts.length === 0 ? "seal" : "seal-even-empty";
  }

  /** Starts the heartbeats of a session, which last until its end. */
  begin(session: string): Promise<RemoteStay> {
    return this.#sessions.begin(session);
  }

  /** Ends the sessions of dead machines, whose packs were recovered. They can add nothing more, even if they are still
   *  alive. */
  async endSilent(): Promise<void> {
    await this.#sessions.endSilent(await this.removed.names());
  }

  /** Packs whose sessions have ended, so that no session relies on them. */
  async packsAtRest(): Promise<ReadonlySet<string>> {
    // A session's key exists from before its first pack until its last pack is uploaded. So a pack that is listed
    // first, and whose session is not listed afterwards, belongs to an ended session.
    const { packs } = await this.#listPacks();
    const open = await this.#sessions.open();
    return new Set([...packs.keys()].filter((id) => !open.has(sessionOf(id))));
  }

  /** Deletes packs that gc removed, and large files that no pack names and no session may still name. */
  async sweep(): Promise<void> {
    const large: string[] = [];
    for await (const { key } of this.bucket.list(LARGE)) large.push(key);
    const open = await this.#sessions.open();
    const parts = await this.#listParts();
    const { packs } = await this.#listPacks();
    const removed = await this.removed.names();
    const hasParts = (id: string) => parts.get(id)?.some(({ bytes }) => bytes > 0) === true;
    const isOwned = (id: string) => packs.has(id) || hasParts(id) || open.has(sessionOf(id));
    const isGone = (id: string) => removed.has(id) || !isOwned(id);
    // Packs first: the next gc removes a large file without a pack, but a pack without its large file would be damage.
    await this.bucket.delete([...packs.keys()].filter((id) => removed.has(id)).map(packKey));
    await this.bucket.delete(
      large.filter((key) => {
        const name = parseLargeName(key.slice(LARGE.length));
        return name !== undefined && isGone(name.pack);
      }),
    );
    await this.pull();
  }

  async #pullOnce(): Promise<void> {
    for (let tries = 1; !(await this.#tryPull()); tries++)
      if (tries === MOST_PULLS)
        throw new RollbookError(
          "bucket-failed",
          { url: this.bucket.url },
          `${this.bucket.url}: the server lists objects that it does not give. Check the server, then run the command again.`,
        );
  }

  /** False: objects vanished since they were listed. */
  async #tryPull(): Promise<boolean> {
    const { packs: packsHere, large, tmp, locks } = this.#paths;
    for (const each of [packsHere, large, tmp, locks]) makeDirectory(each);
    const book = this.#isAgreed ? undefined : await this.bucket.get(BOOK_KEY);
    // Parts first: a pack that is sealed meanwhile is then in the list of packs, or still in its parts.
    const parts = await this.#listParts();
    let { packs, gcVersion } = await this.#listPacks();
    if (!this.removed.isKnown(gcVersion)) {
      // Read before the packs: the list then includes the replacements of the packs that gc removed.
      await this.removed.names();
      ({ packs } = await this.#listPacks());
    }
    const removed = this.removed.known;
    for (const id of removed) {
      parts.delete(id);
      packs.delete(id);
    }
    return this.alone(async () => {
      this.#agreeOn(book);
      let isWhole = await this.#incoming.pullLarge(LARGE, (pack) => packs.has(pack) || parts.has(pack));
      // A different size means that both sides sealed the pack, or that a power loss truncated it. The pack of the
      // bucket counts.
      for (const [id, bytes] of packs)
        if (sizeOf(this.#paths.sealedPack(id)) !== bytes && !(await this.#incoming.fetchPack(id)))
          isWhole = false;
      // A session of this machine has everything in its own file. Check this first: the session may seal its pack
      // meanwhile.
      for (const [id, found] of parts)
        if (!packs.has(id) && !this.#sessions.isOwn(sessionOf(id)))
          if (!(await this.#incoming.pullParts(id, found))) isWhole = false;
      if (isWhole) this.#drop(removed);
      return isWhole;
    });
  }

  /** Deletes local packs that gc removed from the bucket, once their replacements are here. */
  #drop(removed: ReadonlySet<string>): void {
    if (removed.size === 0) return;
    const { packs, large } = this.#paths;
    const gone = readdirSync(packs).filter((file) => removed.has(parsePackName(file)?.id ?? ""));
    if (gone.length > 0) forgetHeadIn(this.#paths, (pack) => removed.has(pack));
    for (const file of gone) unlinkIfThere(join(packs, file));
    syncDirectory(packs);
    for (const file of readdirSync(large))
      if (removed.has(parseLargeName(file)?.pack ?? "")) unlinkIfThere(join(large, file));
  }

  /** Uses the book.json of the bucket, unless the working copy is of another book. */
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
    // There was no local book.json, or another machine created the book at the same time and was first.
    writeAtomically(
      this.#paths.bookJson,
      there,
      join(this.#paths.tmp, `book.json.${process.pid}-${threadId}`),
    );
  }

  /** Sizes of the packs by name, and the version of the object that lists the packs removed by gc. */
  async #listPacks(): Promise<{ packs: Map<string, number>; gcVersion: string | undefined }> {
    const packs = new Map<string, number>();
    let gcVersion: string | undefined;
    for await (const { key, bytes, version } of this.bucket.list(PACKS)) {
      const id = parsePackKey(key);
      if (id !== undefined) packs.set(id, bytes);
      else if (key === GC_KEY) gcVersion = version;
    }
    return { packs, gcVersion };
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

  #localPacks(): string[] {
    const files = readdirSync(this.#paths.packs).sort();
    return files.flatMap((file) => {
      const pack = parsePackName(file);
      return pack?.sealed === true ? [pack.id] : [];
    });
  }
}
