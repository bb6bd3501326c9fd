/** Holds the heads of a book against its packs.
 *  In: the heads, and the hashes that a scan of the packs comes to where the heads want them. Out: what is gone, cut short or
 *  rewritten since. Checks the signatures of heads where a removal rests on them; whom to trust is the reader's to say. */
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
  /** By pack: the counts of entries at which a head names the hash, and what the scan found there. */
  readonly #marks = new Map<string, Map<number, string | undefined>>();
  readonly #scanned = new Set<string>();

  private constructor(paths: BookPaths) {
    this.#paths = paths;
  }

  /** Walks the headers of all packs for heads; before the scan. */
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

  /** Heads that their signers signed. */
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

  /** After the scan. */
  async findings(): Promise<Finding[]> {
    if (this.isEmpty) return [];
    const found = new Map<string, Finding>();
    const gone = [...this.#marks.keys()].some((pack) => !this.#scanned.has(pack));
    // gc may have been at work meanwhile: its head is there before a pack is not.
    const heads = gone ? await readHeads(this.#paths) : this.#heads;
    const replacements = gone ? replacementsIn(heads) : new Map<string, Replacement[]>();
    const book = bookDigestOf(readFileSync(this.#paths.bookJson));
    for (const [digest, head] of this.#heads) {
      const by = `head ${head.sequence} (${digest})`;
      const add: Add = (file, finding) => {
        // What is wrong with a file is said once, and only by a head that was signed: `verify` names the others.
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
  // What a head saw of a pack that then grew was checked when the pack was replaced: gc refuses one that does not fit.
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

/** Only good signatures count. */
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

/** All heads that can be read; a scan names those that cannot. */
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
    if (!isRollbookError(error)) throw error; // damaged: the scan names it
  }
}
