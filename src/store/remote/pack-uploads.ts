/** What goes up of a book in a bucket: parts of open packs, large files, and packs when they are sealed.
 *  In: files of the working copy. Out: objects, each put on the condition that its key is new. A pack is begun by its first part,
 *  before anything of it counts. An empty part in that place says that the session was ended. */
import { existsSync, readdirSync, renameSync } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { basename, join } from "node:path";
import { RollbookError } from "../../base/index.ts";
import { isMissing, makeDirectory, syncDirectory } from "../disk/index.ts";
import { forgetHeadIn } from "../head/index.ts";
import { type BookPaths, firstEntryEnd, parseLargeName } from "../pack/index.ts";
import type { Bucket } from "./bucket.ts";
import { LARGE, PARTS, packKey, parsePartKey, partKey, sessionOf } from "./remote-keys.ts";

/** Large files that go up at a time: each is in memory meanwhile. */
const PUSHED_AT_ONCE = 4;

/** Puts the pack of the bucket in place of the one here. */
type TakeOver = (id: string, isLive: boolean) => Promise<void>;

export class PackUploads {
  readonly #bucket: Bucket;
  readonly #paths: BookPaths;
  readonly #takeOver: TakeOver;
  readonly #pushedLarge = new Set<string>();
  /** Parts that this process put, by pack. */
  readonly #pushedParts = new Map<string, string[]>();

  constructor(bucket: Bucket, paths: BookPaths, takeOver: TakeOver) {
    this.#bucket = bucket;
    this.#paths = paths;
    this.#takeOver = takeOver;
  }

  /** Uploads a sealed pack and takes its parts away. If the bucket has the pack already, that one counts; a session that
   *  has put more into its own (`isLive`) hears of it. */
  async pushPack(id: string, { isLive = false }: { isLive?: boolean } = {}): Promise<void> {
    if (!existsSync(this.#paths.sealedPack(id))) return; // it held nothing and was removed
    if (!(isLive && (await this.#begin(id))) && !(await this.#mayGoUp(id))) {
      if (isLive) throw sessionReplaced(id, this.#bucket.url);
      return this.#setAside(id);
    }
    await this.pushLarge(id);
    if (!(await this.#bucket.putNewFile(packKey(id), this.#paths.sealedPack(id))))
      await this.#takeOver(id, isLive);
    const keys = (isLive ? this.#pushedParts.get(id) : undefined) ?? [];
    // An empty part closes the chain: it stays, so that a writer that was taken for dead cannot go on.
    if (keys.length === 0)
      for await (const { key, bytes } of this.#bucket.list(`${PARTS}${id}/`)) if (bytes > 0) keys.push(key);
    await this.#bucket.delete(keys);
    this.#pushedParts.delete(id);
  }

  /** Begins a pack in the bucket with its first entry, before its large files and itself. False: something is there. */
  async #begin(id: string): Promise<boolean> {
    if (this.#pushedParts.has(id)) return true;
    const bytes = await this.#readPart(id, 0, await this.#headerEnd(id));
    if (!(await this.#bucket.putNew(partKey(id, 0), bytes))) return false;
    this.#pushedParts.set(id, [partKey(id, 0)]);
    return true;
  }

  /** Whether the pack is begun. False: the session was ended, and nothing of the pack was acknowledged. */
  async #mayGoUp(id: string): Promise<boolean> {
    for (;;) {
      let isBegun = false;
      // Packs go up in order. Where an earlier one was closed, the session was taken for dead: this one may rely on what was
      // not acknowledged.
      for await (const { key, bytes } of this.#bucket.list(`${PARTS}${sessionOf(id)}-`)) {
        const part = parsePartKey(key);
        if (part === undefined || part.id > id) continue;
        if (bytes === 0 && (part.id < id || part.offset === 0)) return false;
        if (part.id === id) isBegun = true;
      }
      if (isBegun || (await this.#begin(id))) return true;
    }
  }

  /** A pack that other machines must not see: gc counted on its session having ended. */
  #setAside(id: string): void {
    makeDirectory(this.#paths.torn);
    const files = this.#largeFilesOf(id).map((file) => join(this.#paths.large, file));
    forgetHeadIn(this.#paths, (pack) => pack === id);
    for (const path of [this.#paths.sealedPack(id), ...files])
      renameSync(path, join(this.#paths.torn, basename(path)));
    for (const each of [this.#paths.packs, this.#paths.torn]) syncDirectory(each);
  }

  async pushLarge(id: string): Promise<void> {
    const files = this.#largeFilesOf(id)
      .filter((file) => !this.#pushedLarge.has(file))
      .values();
    const push = async () => {
      for (const file of files) {
        await this.#bucket.putNewFile(`${LARGE}${file}`, join(this.#paths.large, file));
        this.#pushedLarge.add(file);
      }
    };
    await Promise.all(Array.from({ length: PUSHED_AT_ONCE }, push));
  }

  /** Bytes of an open pack from `from` to `to`. Refused if another machine took this session for dead. */
  async pushPart(id: string, from: number, to: number): Promise<void> {
    const bytes = await this.#readPart(id, from, to);
    const key = partKey(id, from);
    if (!(await this.#bucket.putNew(key, bytes))) {
      // A retry of a request that had succeeded finds its own bytes.
      const there = await this.#bucket.get(key);
      if (there === undefined || Buffer.compare(there, bytes) !== 0)
        throw sessionReplaced(id, this.#bucket.url);
    }
    this.#pushedParts.set(id, [...(this.#pushedParts.get(id) ?? []), key]);
  }

  async #headerEnd(id: string): Promise<number> {
    const file = await this.#openEither(id);
    try {
      const end = firstEntryEnd(file.fd, (await file.stat()).size);
      if (end > 0) return end;
      throw new RollbookError(
        "bad-pack",
        { pack: id },
        `pack ${id} of ${this.#paths.root} does not begin with a header. Check the disk, then restore the pack.`,
      );
    } finally {
      await file.close();
    }
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

  #largeFilesOf(id: string): string[] {
    return readdirSync(this.#paths.large).filter((file) => parseLargeName(file)?.pack === id);
  }
}

export function sessionReplaced(pack: string, url: string): RollbookError {
  return new RollbookError(
    "session-replaced",
    { pack, url },
    "another machine took this session for dead, because it was silent for a minute, and sealed its pack. Acknowledged records are safe; open the book again and repeat the rest.",
  );
}
