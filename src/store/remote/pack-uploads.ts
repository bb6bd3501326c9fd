/** Uploads to a book in a bucket: parts of open packs, large files, and sealed packs.
 *  In: files of the working copy. Out: objects, each put on the condition that its key is new. The first part of a pack
 *  goes up before anything in the pack counts. An empty part at that key means that another machine ended the
 *  session. */
import { existsSync, readdirSync, renameSync } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { basename, join } from "node:path";
import { RollbookError } from "../../base/index.ts";
import { isMissing, makeDirectory, syncDirectory } from "../disk/index.ts";
import { forgetHeadIn } from "../head/index.ts";
import { type BookPaths, firstEntryEnd, parseLargeName } from "../pack/index.ts";
import type { Bucket } from "./bucket.ts";
import { LARGE, PARTS, packKey, parsePartKey, partKey, sessionOf } from "./remote-keys.ts";

/** Large files uploaded at the same time: each is in memory meanwhile. */
const PUSHED_AT_ONCE = 4;

/** Replaces the local pack by the pack of the bucket. */
type TakeOver = (id: string, isLive: boolean) => Promise<void>;

export class PackUploads {
  readonly #bucket: Bucket;
  readonly #paths: BookPaths;
  readonly #takeOver: TakeOver;
  readonly #pushedLarge = new Set<string>();
  /** Parts that this process uploaded, by pack. */
  readonly #pushedParts = new Map<string, string[]>();

  constructor(bucket: Bucket, paths: BookPaths, takeOver: TakeOver) {
    this.#bucket = bucket;
    this.#paths = paths;
    this.#takeOver = takeOver;
  }

  /** Uploads a sealed pack and deletes its parts. If the bucket already has the pack, the bucket's pack counts. Throws
   *  if a live session (`isLive`) has put more into its own pack. */
  async pushPack(id: string, { isLive = false }: { isLive?: boolean } = {}): Promise<void> {
    if (!existsSync(this.#paths.sealedPack(id))) return; // it was empty and was removed
    if (!(isLive && (await this.#begin(id))) && !(await this.#mayGoUp(id))) {
      if (isLive) throw sessionReplaced(id, this.#bucket.url);
      return this.#setAside(id);
    }
    await this.pushLarge(id);
    if (!(await this.#bucket.putNewFile(packKey(id), this.#paths.sealedPack(id))))
      await this.#takeOver(id, isLive);
    const keys = (isLive ? this.#pushedParts.get(id) : undefined) ?? [];
    // An empty part closes the chain. It stays, so that a writer presumed dead cannot continue.
    if (keys.length === 0)
      for await (const { key, bytes } of this.#bucket.list(`${PARTS}${id}/`)) if (bytes > 0) keys.push(key);
    await this.#bucket.delete(keys);
    this.#pushedParts.delete(id);
  }

  /** Uploads the first entry of a pack, before its large files and the pack itself. False: the key exists. */
  async #begin(id: string): Promise<boolean> {
    if (this.#pushedParts.has(id)) return true;
    const bytes = await this.#readPart(id, 0, await this.#headerEnd(id));
    if (!(await this.#bucket.putNew(partKey(id, 0), bytes))) return false;
    this.#pushedParts.set(id, [partKey(id, 0)]);
    return true;
  }

  /** True if the pack has begun in the bucket. False: the session was ended, and nothing in the pack was
   *  acknowledged. */
  async #mayGoUp(id: string): Promise<boolean> {
    for (;;) {
      let isBegun = false;
      // Packs go up in order. A closed earlier pack means that the session was presumed dead: this pack may rely on
      // entries that were not acknowledged.
      for await (const { key, bytes } of this.#bucket.list(`${PARTS}${sessionOf(id)}-`)) {
        const part = parsePartKey(key);
        if (part === undefined || part.id > id) continue;
        if (bytes === 0 && (part.id < id || part.offset === 0)) return false;
        if (part.id === id) isBegun = true;
      }
      if (isBegun || (await this.#begin(id))) return true;
    }
  }

  /** Moves away a pack that other machines must not see: gc assumed that its session had ended. */
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

  /** Uploads the bytes `from` … `to` of an open pack. Refused if another machine presumed this session dead. */
  async pushPart(id: string, from: number, to: number): Promise<void> {
    const bytes = await this.#readPart(id, from, to);
    const key = partKey(id, from);
    if (!(await this.#bucket.putNew(key, bytes))) {
      // After a retry of a request that had succeeded, the key holds our own bytes.
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

  /** The pack may be sealed while a flush of its earlier bytes is in progress. */
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
