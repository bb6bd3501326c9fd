/** Compares the heads of a book with its packs.
 *  In: the heads, and the hashes of a pack scan at the counts that the heads name. Out: packs that are missing,
 *  truncated or rewritten. Checks the signatures of heads that justify a removal. Does not decide which signers to
 *  trust; the reader does. */
import { readFileSync } from "node:fs";
import { type Digest, isRollbookError } from "../../base/index.ts";
import { BookHead, checkHead, openRecord, type PackState } from "../../contract/index.ts";
import type { Finding } from "../blob/index.ts";
import {
  type BookPaths,
  bookDigestOf,
  type ChainWatch,
  type HeaderVisit,
  listPacks,
  PACK_LARGE_KIND,
  PackFiles,
  parseLargeEntry,
  readLarge,
} from "../pack/index.ts";

export class HeadCheck implements ChainWatch {
  readonly #paths: BookPaths;
  #heads: ReadonlyMap<Digest, BookHead> = new Map();
  /** By pack: the entry counts for which a head names a hash, and the hash that the scan found. */
  readonly #marks = new Map<string, Map<number, string | undefined>>();
  readonly #scanned = new Set<string>();

  private constructor(paths: BookPaths) {
    this.#paths = paths;
  }

  /** Reads the heads from the headers of all packs. Call before the scan. */
  static async begin(paths: BookPaths): Promise<HeadCheck> {
    const check = new HeadCheck(paths);
    check.#heads = await readHeads(paths);
    for (const { packs } of check.#heads.values())
      for (const { pack, entries } of packs) {
        const marks = check.#marks.get(pack) ?? new Map<number, string | undefined>();
        check.#marks.set(pack, marks.set(entries, undefined));
      }
    return check;
  }

  get isEmpty(): boolean {
    return this.#heads.size === 0;
  }

  /** Heads with a valid signature. */
  signed(): ReadonlyMap<Digest, BookHead> {
    return new Map([...this.#heads].filter(([, head]) => isGood(head)));
  }

  wants(pack: string, entries: number): boolean {
    return this.#marks.get(pack)?.has(entries) === true;
  }

  note(pack: string, entries: number, chain: string): void {
    this.#marks.get(pack)!.set(entries, chain);
  }

  scanned(pack: string): void {
    this.#scanned.add(pack);
  }

  /** Call after the scan. */
  async findings(): Promise<Finding[]> {
    if (this.isEmpty) return [];
    const found = new Map<string, Finding>();
    const gone = [...this.#marks.keys()].some((pack) => !this.#scanned.has(pack));
    // gc may have run meanwhile: it writes its head before it removes a pack.
    const heads = gone ? await readHeads(this.#paths) : this.#heads;
    const replacements = gone ? replacementsIn(heads) : new Map<string, Replacement[]>();
    const book = bookDigestOf(readFileSync(this.#paths.bookJson));
    for (const [digest, head] of this.#heads) {
      const by = `head ${head.sequence} (${digest})`;
      const add: Add = (file, finding) => {
        // Report a fault of a file once, and only from a head with a valid signature; `verify` reports the other heads.
        if (!found.has(file) && isGood(head)) found.set(file, { file, offset: 0, length: 0, ...finding });
      };
      if (head.book !== book)
        add("book.json", {
          code: "head-mismatch",
          message: `${by} is of a book with the digest ${head.book}`,
        });
      for (const state of head.packs) {
        const file = `packs/${state.pack}.pack`;
        if (this.#scanned.has(state.pack)) {
          const actual = this.#marks.get(state.pack)!.get(state.entries);
          const is = actual === undefined ? "the pack has fewer" : `they hash to ${actual}`;
          if (actual !== state.chain)
            add(file, {
              code: "head-mismatch",
              message: `${by} names ${state.entries} entries with the hash ${state.chain}; ${is}`,
            });
        } else judgeGone({ add, file, by, state, head, replacements: replacements.get(state.pack) ?? [] });
      }
    }
    return [...found.values()];
  }
}

interface Replacement {
  readonly state: PackState;
  readonly signer: string;
}

type Add = (file: string, finding: Pick<Finding, "code" | "message" | "actual">) => void;

function judgeGone(options: {
  add: Add;
  file: string;
  by: string;
  state: PackState;
  head: BookHead;
  replacements: readonly Replacement[];
}): void {
  const { add, file, by, state, head, replacements } = options;
  // An earlier state of a pack that grew later was checked when gc replaced the pack: gc refuses a pack that does not
  // match.
  const fits = replacements.filter(
    ({ state: { entries, chain } }) =>
      entries > state.entries || (entries === state.entries && chain === state.chain),
  );
  if (fits.some(({ signer }) => signer === head.signer)) return;
  const [other] = fits;
  if (other === undefined)
    add(file, { code: "missing-pack", message: `${by} names this pack, and it is gone` });
  else
    add(file, {
      code: "foreign-replacement",
      message: `${by} names this pack, and only ${other.signer} says that gc replaced it (\`rollbook keys trust\` accepts a key)`,
      actual: other.signer,
    });
}

/** Only valid signatures count. */
function replacementsIn(heads: ReadonlyMap<Digest, BookHead>): Map<string, Replacement[]> {
  const byPack = new Map<string, Replacement[]>();
  for (const head of heads.values()) {
    if (head.replaced === undefined || !isGood(head)) continue;
    for (const state of head.replaced)
      byPack.set(state.pack, [...(byPack.get(state.pack) ?? []), { state, signer: head.signer }]);
  }
  return byPack;
}

function isGood(head: BookHead): boolean {
  try {
    checkHead(head);
    return true;
  } catch (error) {
    if (isRollbookError(error)) return false;
    throw error;
  }
}

/** All readable heads; a scan reports unreadable ones. */
async function readHeads(paths: BookPaths): Promise<ReadonlyMap<Digest, BookHead>> {
  const heads = new Map<Digest, BookHead>();
  const files = new PackFiles(paths);
  try {
    for (const { id } of listPacks(paths)) {
      const places: HeaderVisit[] = [];
      files.walk(id, 0, (entry) => {
        if (entry.kind === BookHead.kind || entry.kind === PACK_LARGE_KIND) places.push(entry);
      });
      for (const entry of places) await readHead({ paths, files, id, entry }, heads);
    }
  } finally {
    files.close();
  }
  return heads;
}

async function readHead(
  { paths, files, id, entry }: { paths: BookPaths; files: PackFiles; id: string; entry: HeaderVisit },
  heads: Map<Digest, BookHead>,
): Promise<void> {
  try {
    const blob = files.read(id, entry, entry.digest);
    if (blob === undefined) return;
    const large = entry.kind === PACK_LARGE_KIND ? parseLargeEntry(blob.bytes) : undefined;
    if (entry.kind === PACK_LARGE_KIND && large?.kind !== BookHead.kind) return;
    const bytes = large === undefined ? blob.bytes : await readLarge(paths, id, large);
    const digest = large?.digest ?? entry.digest;
    if (bytes instanceof Uint8Array && !heads.has(digest))
      heads.set(digest, openRecord(BookHead, bytes, digest));
  } catch (error) {
    if (!isRollbookError(error)) throw error; // damaged: the scan reports it
  }
}
