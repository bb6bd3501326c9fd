/** Downloads objects of a bucket into the working copy. In: their keys. Out: files of the book; every byte is checked
 *  before the file gets its name. Does not decide what to download. */
import { closeSync, constants, existsSync, openSync, renameSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { RollbookError } from "../../base/index.ts";
import {
  makeDirectory,
  OWNER_ONLY,
  syncDirectory,
  unlinkIfThere,
  withLock,
  writeFully,
} from "../disk/index.ts";
import { forgetHeadIn } from "../head/index.ts";
import { type BookPaths, bookPaths, largeFault, PackScan, parseLargeName, ScanBlock } from "../pack/index.ts";
import type { Bucket, BucketObject } from "./bucket.ts";
import { LARGE, packKey, parsePartKey } from "./remote-keys.ts";

/** Another process of this machine may be downloading a whole book. */
const LOCK_MS = 6 * 3_600_000;

export class Incoming {
  readonly #bucket: Bucket;
  readonly #paths: BookPaths;
  /** Folder for unchecked objects, laid out as a book. Used only under the lock of `alone`. */
  readonly #unchecked: BookPaths;

  constructor(bucket: Bucket, paths: BookPaths) {
    this.#bucket = bucket;
    this.#paths = paths;
    this.#unchecked = bookPaths(join(paths.root, "tmp", "incoming"));
  }

  /** Runs `work` while no other process of this machine downloads, recovers or replaces packs. */
  alone<T>(work: () => Promise<T>): Promise<T> {
    const { root, packs, large } = this.#unchecked;
    const clear = () => rmSync(root, { recursive: true, force: true });
    const whileAlone = async () => {
      clear(); // leftovers of a crash
      for (const each of [packs, large]) makeDirectory(each);
      try {
        return await work();
      } finally {
        clear();
      }
    };
    return withLock(join(this.#paths.locks, "remote.lock"), whileAlone, LOCK_MS);
  }

  /** Downloads a pack and checks every byte before it gets its name in the book. False: the bucket has no such pack. */
  async fetchPack(id: string): Promise<boolean> {
    const temp = this.#unchecked.sealedPack(id);
    if (!(await this.#bucket.getFile(packKey(id), temp))) return false;
    const fault = await packFault(this.#unchecked, id);
    if (fault !== undefined) {
      unlinkIfThere(temp);
      throw this.#damaged(packKey(id), fault);
    }
    if (existsSync(this.#paths.sealedPack(id))) forgetHeadIn(this.#paths, (pack) => pack === id);
    renameSync(temp, this.#paths.sealedPack(id));
    syncDirectory(this.#paths.packs);
    unlinkIfThere(this.#paths.openPack(id));
    return true;
  }

  #damaged(key: string, fault: string): RollbookError {
    return new RollbookError(
      "damaged-object",
      { url: this.#bucket.url, key },
      `${this.#bucket.url}/${key}: ${fault}. Restore the object from a copy; nothing of it was taken over.`,
    );
  }

  /** Appends new parts to the copy of a pack that another machine writes. False: the bucket has neither parts nor
   *  pack. */
  async pullParts(id: string, parts: readonly BucketObject[]): Promise<boolean> {
    if (existsSync(this.#paths.sealedPack(id))) return true;
    const path = this.#paths.openPack(id);
    let size = sizeOf(path) ?? 0;
    for (const { key, bytes } of parts) {
      const { offset } = parsePartKey(key)!;
      if (offset + bytes <= size) continue;
      if (offset > size) return true; // the list is outdated: the next pull has the rest
      const part = await this.#bucket.get(key);
      if (part === undefined) return this.fetchPack(id); // sealed since the packs were listed
      // Write at its offset: a crash may have left a piece of the part.
      const fd = openSync(path, constants.O_RDWR | constants.O_CREAT, OWNER_ONLY);
      try {
        writeFully(fd, part, offset);
      } finally {
        closeSync(fd);
      }
      size = offset + part.length;
    }
    return true;
  }

  /** False: an object was deleted since it was listed. */
  async pullLarge(prefix: string, isWanted: (pack: string) => boolean): Promise<boolean> {
    let isWhole = true;
    for await (const { key, bytes } of this.#bucket.list(prefix)) {
      const file = key.slice(LARGE.length);
      const name = parseLargeName(file);
      if (name === undefined || !isWanted(name.pack)) continue;
      if (sizeOf(join(this.#paths.large, file)) === bytes) continue;
      const temp = join(this.#unchecked.large, file);
      if (!(await this.#bucket.getFile(key, temp))) {
        isWhole = false;
        continue;
      }
      const fault = await largeFault(this.#unchecked, name.pack, { ...name, bytes });
      if (fault !== undefined) {
        unlinkIfThere(temp);
        throw this.#damaged(key, fault.message);
      }
      renameSync(temp, join(this.#paths.large, file));
    }
    return isWhole;
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

export function sizeOf(path: string): number | undefined {
  return statSync(path, { throwIfNoEntry: false })?.size;
}
