/** A book in a bucket, with its working copy on this machine: a directory that is a book itself.
 *  Down: sealed packs, large files, and the parts of packs that other machines write now. Up: what a session of this machine
 *  flushed, as parts, and each pack when it is sealed. Packs and parts never change, and every write is conditional:
 *  of two writers of one key one fails, so nothing is lost or doubled. The catalog is made from the working copy. */
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { open } from "node:fs/promises";
import { join } from "node:path";
import { threadId } from "node:worker_threads";
import { RollbookError } from "../../base/index.ts";
import { isMissing, makeDirectory, unlinkIfThere, withLock, writeAtomically } from "../disk/index.ts";
import {
  type BookPaths,
  bookFault,
  bookPaths,
  largeFault,
  PackScan,
  parseLargeName,
  parsePackName,
  ScanBlock,
} from "../pack/index.ts";
import type { Bucket, BucketObject } from "./bucket.ts";
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
import { openS3Bucket } from "./s3-bucket.ts";

/** A session that has not been heard of for so long is dead: its machine or its network is. */
export const SILENT_MS = 60_000;
export const BEAT_MS = 15_000;

const REMOTE_FILE = "remote.json";

/** The bucket that a directory is the working copy of; undefined for a book that is on disk alone. */
export async function remoteOf(root: string): Promise<RemoteBook | undefined> {
  let text: string;
  try {
    text = readFileSync(join(root, REMOTE_FILE), "utf8");
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
  const { url } = JSON.parse(text) as { url: string };
  return new RemoteBook(await openS3Bucket(url), root);
}

/** What the client of the bucket reads from the environment; nothing for a book on disk. */
export function bucketEnvironment(
  root: string,
  env: Readonly<Record<string, string | undefined>> = process.env,
): Record<string, string> {
  if (!existsSync(join(root, REMOTE_FILE))) return {};
  const wanted = Object.entries(env).filter(([name]) =>
    /^(AWS_.*|HOME|USERPROFILE|HTTPS?_PROXY|NO_PROXY)$/i.test(name),
  );
  return Object.fromEntries(wanted) as Record<string, string>;
}

/** Makes the working copy of a book in a bucket, or brings it up to date. */
export async function checkOut(url: string, root: string): Promise<RemoteBook> {
  const remote = new RemoteBook(await openS3Bucket(url), root);
  mkdirSync(root, { recursive: true, mode: 0o700 });
  writeFileSync(join(root, REMOTE_FILE), `${JSON.stringify({ url })}\n`, { mode: 0o600 });
  await remote.pull();
  return remote;
}

export class RemoteBook {
  readonly bucket: Bucket;
  readonly #paths: BookPaths;
  /** Where objects lie until they are checked: laid out as a book. */
  readonly #incoming: BookPaths;
  readonly #pushedLarge = new Set<string>();
  #pulling: Promise<void> | undefined;
  #queued: Promise<void> | undefined;

  constructor(bucket: Bucket, root: string) {
    this.bucket = bucket;
    this.#paths = bookPaths(root);
    this.#incoming = bookPaths(join(root, "tmp", `incoming-${process.pid}-${threadId}`));
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

  /** The book.json of the bucket, or this one, if the bucket has none yet. Call before anything is written. */
  async settleBook(): Promise<void> {
    if (await this.bucket.putNew(BOOK_KEY, readFileSync(this.#paths.bookJson))) return;
    const there = await this.bucket.get(BOOK_KEY);
    const own = readFileSync(this.#paths.bookJson);
    if (there === undefined || Buffer.compare(there, own) === 0) return;
    if (this.#localPacks().length > 0)
      throw new RollbookError(
        "other-book",
        { url: this.bucket.url, root: this.#paths.root },
        `${this.bucket.url} holds another book than its working copy ${this.#paths.root}. Move that directory away and try again.`,
      );
    // Two machines made the book at the same time, and the other one was first.
    writeAtomically(this.#paths.bookJson, there, join(this.#paths.tmp, "book.json"));
  }

  /** Packs that the bucket lacks: a crash of this machine kept them from going up, or somebody removed them there. */
  async pushForgotten(): Promise<void> {
    const there = new Set<string>();
    for await (const { key } of this.bucket.list(PACKS)) there.add(parsePackKey(key) ?? "");
    for (const id of this.#localPacks()) if (!there.has(id)) await this.pushPack(id);
  }

  /** Uploads a sealed pack and takes its parts away. If the bucket has the pack already, that one counts. */
  async pushPack(id: string): Promise<void> {
    if (!existsSync(this.#paths.sealedPack(id))) return; // it held nothing and was removed
    await this.pushLarge(id);
    // Where another machine was first, its pack replaces the one that was sealed here.
    if (!(await this.bucket.putNewFile(packKey(id), this.#paths.sealedPack(id)))) await this.#fetchPack(id);
    const keys: string[] = [];
    // An empty part closes the chain: it stays, so that a writer that was taken for dead cannot go on.
    for await (const { key, bytes } of this.bucket.list(`${PARTS}${id}/`)) if (bytes > 0) keys.push(key);
    if (keys.length > 0) await this.bucket.delete(keys);
  }

  async pushLarge(id: string): Promise<void> {
    for (const file of this.#largeFilesOf(id)) {
      if (this.#pushedLarge.has(file)) continue;
      await this.bucket.putNewFile(`${LARGE}${file}`, join(this.#paths.large, file));
      this.#pushedLarge.add(file);
    }
  }

  /** Bytes of an open pack from `from` to `to`. Refused if another machine took this session for dead. */
  async pushPart(id: string, from: number, to: number): Promise<void> {
    const bytes = await readPart(this.#paths.openPack(id), from, to);
    const key = partKey(id, from);
    if (await this.bucket.putNew(key, bytes)) return;
    // A retry of a request that had succeeded finds its own bytes.
    const there = await this.bucket.get(key);
    if (there !== undefined && Buffer.compare(there, bytes) === 0) return;
    throw new RollbookError(
      "session-replaced",
      { pack: id, url: this.bucket.url },
      "another machine took this session for dead, because it was silent for a minute, and sealed its pack. Acknowledged records are safe; open the book again and repeat the rest.",
    );
  }

  /** Whether this machine may recover an open pack: its session is of this machine, or silent. Closes its chain of parts, so
   *  that the session cannot go on if it lives after all. */
  async mayRecover(id: string): Promise<boolean> {
    const session = id.slice(0, id.lastIndexOf("-"));
    if (!existsSync(this.#ownFile(session)) && (await this.liveSessions()).has(session)) return false;
    let [end, closedMs] = [0, Number.NaN];
    for await (const { key, bytes, modifiedMs } of this.bucket.list(`${PARTS}${id}/`)) {
      end = Math.max(end, parsePartKey(key)!.offset + bytes);
      if (bytes === 0) closedMs = modifiedMs;
    }
    // Closed by a machine that may be at work on it; if it died meanwhile, somebody else must go on.
    if (!Number.isNaN(closedMs)) return (await this.bucket.nowMs()) - closedMs >= SILENT_MS;
    return await this.bucket.putNew(partKey(id, end), new Uint8Array());
  }

  /** Gives a sign of life now and then, until `end`. */
  async begin(session: string): Promise<{ end(): Promise<void> }> {
    makeDirectory(join(this.#paths.root, "remote"));
    writeFileSync(this.#ownFile(session), "", { mode: 0o600 });
    await this.beat(session);
    const timer = setInterval(() => void this.beat(session).catch(() => {}), BEAT_MS);
    timer.unref();
    return {
      end: async () => {
        clearInterval(timer);
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
    for (const each of [packsHere, large, tmp, locks, this.#incoming.packs, this.#incoming.large])
      makeDirectory(each);
    await this.#pullBook();
    // Parts first: a pack that is sealed meanwhile is then in the list of packs, or still in its parts.
    const parts = await this.#listParts();
    const packs = new Set<string>();
    for await (const { key } of this.bucket.list(PACKS)) {
      const id = parsePackKey(key);
      if (id !== undefined) packs.add(id);
    }
    await withLock(join(this.#paths.locks, "remote.lock"), async () => {
      await this.#pullLarge(packs, parts);
      for (const id of packs) if (!existsSync(this.#paths.sealedPack(id))) await this.#fetchPack(id);
      for (const [id, found] of parts) if (!packs.has(id)) await this.#pullParts(id, found);
    });
    rmSync(this.#incoming.root, { recursive: true, force: true });
  }

  async #pullBook(): Promise<void> {
    if (existsSync(this.#paths.bookJson)) return;
    const bytes = await this.bucket.get(BOOK_KEY);
    if (bytes === undefined) return;
    const fault = bookFault(bytes);
    if (fault !== undefined)
      throw new RollbookError(
        "bad-book",
        { url: this.bucket.url },
        `${this.bucket.url}/${BOOK_KEY}: ${fault}.`,
      );
    writeAtomically(this.#paths.bookJson, bytes, join(this.#paths.tmp, "book.json"));
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

  /** Checked byte for byte before it has a name in the book. */
  async #fetchPack(id: string): Promise<void> {
    const temp = this.#incoming.sealedPack(id);
    if (!(await this.bucket.getFile(packKey(id), temp))) return; // gc took it away meanwhile
    const fault = await packFault(this.#incoming, id);
    if (fault !== undefined) {
      unlinkIfThere(temp);
      throw this.#damaged(packKey(id), fault);
    }
    renameSync(temp, this.#paths.sealedPack(id));
    unlinkIfThere(this.#paths.openPack(id));
  }

  #damaged(key: string, fault: string): RollbookError {
    return new RollbookError(
      "damaged-object",
      { url: this.bucket.url, key },
      `${this.bucket.url}/${key}: ${fault}. Restore the object from a copy; nothing of it was taken over.`,
    );
  }

  /** Appends what is new to the copy of a pack that another machine writes. Own packs have everything already. */
  async #pullParts(id: string, parts: readonly BucketObject[]): Promise<void> {
    if (existsSync(this.#paths.sealedPack(id))) return;
    const path = this.#paths.openPack(id);
    let size = existsSync(path) ? statSync(path).size : 0;
    for (const { key, bytes } of parts) {
      const { offset } = parsePartKey(key)!;
      if (offset + bytes <= size) continue;
      if (offset !== size) return; // the rest of a list that has changed: the next pull has it
      const part = await this.bucket.get(key);
      if (part === undefined) return; // sealed meanwhile
      const file = await open(path, "a", 0o600);
      try {
        await file.write(part);
      } finally {
        await file.close();
      }
      size += part.length;
    }
  }

  async #pullLarge(packs: ReadonlySet<string>, parts: ReadonlyMap<string, unknown>): Promise<void> {
    for await (const { key, bytes } of this.bucket.list(LARGE)) {
      const file = key.slice(LARGE.length);
      const name = parseLargeName(file);
      if (name === undefined || !(packs.has(name.pack) || parts.has(name.pack))) continue;
      if (existsSync(join(this.#paths.large, file))) continue;
      const temp = join(this.#incoming.large, file);
      if (!(await this.bucket.getFile(key, temp))) continue;
      const fault = await largeFault(this.#incoming, name.pack, { ...name, bytes });
      if (fault !== undefined) {
        unlinkIfThere(temp);
        throw this.#damaged(key, fault.message);
      }
      renameSync(temp, join(this.#paths.large, file));
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

/** Undefined: every byte of the pack is as it was sealed. */
async function packFault(paths: BookPaths, id: string): Promise<string | undefined> {
  const scan = await PackScan.open(paths, { id, session: "", sealed: true }, { block: new ScanBlock() });
  if (scan === undefined) return "the pack is gone";
  try {
    for (let item = scan.next(); item !== undefined; item = scan.next()) {
      if (item === "more") await scan.more();
      else if (item.type === "damage") return item.finding.message;
    }
    return undefined;
  } finally {
    await scan.close();
  }
}

async function readPart(path: string, from: number, to: number): Promise<Uint8Array> {
  const file = await open(path, "r");
  try {
    const bytes = Buffer.allocUnsafeSlow(to - from);
    for (let read = 0; read < bytes.length; ) {
      const { bytesRead } = await file.read(bytes, read, bytes.length - read, from + read);
      if (bytesRead === 0) break;
      read += bytesRead;
    }
    return bytes;
  } finally {
    await file.close();
  }
}
