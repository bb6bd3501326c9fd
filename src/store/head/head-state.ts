/** `head.json`: the last head of a book, and the packs that the heads up to it cover completely. A hint for the next
 *  writer; the heads themselves are records in packs. If it is absent or unreadable, the next head names every pack
 *  again. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type Digest, isDigest, isObject } from "../../base/index.ts";
import { isMissing, unlinkIfThere, writeAtomically } from "../disk/index.ts";
import {
  type BookPaths,
  bookPaths,
  type HeaderVisit,
  jsonBytes,
  listPacks,
  PACK_LARGE_KIND,
  PackFiles,
  parseLargeEntry,
} from "../pack/index.ts";

export interface HeadState {
  readonly head: Digest | undefined;
  readonly sequence: number;
  readonly packs: ReadonlySet<string>;
}

const NONE: HeadState = { head: undefined, sequence: 0, packs: new Set() };

export function readHeadState(paths: BookPaths): HeadState {
  let value: unknown;
  try {
    value = JSON.parse(readFileSync(paths.head, "utf8"));
  } catch (error) {
    if (isMissing(error) || error instanceof SyntaxError) return NONE;
    throw error;
  }
  if (!isObject(value) || !isDigest(value.head) || !Number.isSafeInteger(value.sequence)) return NONE;
  const packs = Array.isArray(value.packs) ? value.packs.filter((each) => typeof each === "string") : [];
  return { head: value.head, sequence: value.sequence as number, packs: new Set(packs) };
}

/** Last head that a writer saved; undefined if there is none. */
export function readLastHead(root: string): Digest | undefined {
  return readHeadState(bookPaths(root)).head;
}

/** Call under the book's lock. */
export function writeHeadState(paths: BookPaths, { head, sequence, packs }: HeadState): void {
  const bytes = jsonBytes({ head, sequence, packs: [...packs].sort() });
  writeAtomically(paths.head, bytes, join(paths.tmp, "head.json"));
}

/** Forgets the last head if it is only in packs that are removed: the next head must reference a remaining head. */
export function forgetHeadIn(paths: BookPaths, goes: (pack: string) => boolean): void {
  const { head } = readHeadState(paths);
  if (head === undefined) return;
  const files = new PackFiles(paths);
  try {
    for (const { id } of listPacks(paths).filter((pack) => !goes(pack.id))) {
      const places: HeaderVisit[] = [];
      files.walk(id, 0, (entry) => {
        if (entry.digest === head || entry.kind === PACK_LARGE_KIND) places.push(entry);
      });
      for (const entry of places) {
        if (entry.digest === head) return;
        const standIn = files.read(id, entry, entry.digest);
        if (standIn !== undefined && parseLargeEntry(standIn.bytes)?.digest === head) return;
      }
    }
  } finally {
    files.close();
  }
  unlinkIfThere(paths.head);
}
