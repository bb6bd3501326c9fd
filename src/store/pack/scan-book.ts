/** Reads a whole book and checks every byte: book.json, packs, large files.
 *  In: the book's paths. Out: blobs and damage in storage order. Takes no lock and changes nothing. Packs that grow or
 *  vanish meanwhile (writers, gc) are not damage. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { given, RollbookError } from "../../base/index.ts";
import type { Finding, Location, ScanItem } from "../blob/index.ts";
import { largeFault, largePath } from "./large-files.ts";
import { PACK_FOOTER_KIND, PACK_HEADER_KIND, PACK_LARGE_KIND } from "./pack-format.ts";
import { type BookPaths, type PackName, parseLargeName, parsePackName } from "./pack-names.ts";
import { type DamageStep, type EntryStep, openPack, type PackReader, ScanBlock } from "./pack-reader.ts";
import {
  bookFault,
  type LargeEntry,
  PackChain,
  parseFooter,
  parseLargeEntry,
  parsePackHeader,
} from "./pack-records.ts";

/** Scans in runs, as `BlobStore.scanRuns` returns them. A run ends at the end of a block, or before a large file. */
export async function* scanBook(paths: BookPaths, watch?: ChainWatch): AsyncGenerator<Iterable<ScanItem>> {
  yield checkNames(paths).map((finding) => ({ type: "damage", finding }));
  const block = new ScanBlock();
  const seen = new Set<string>();
  // gc moves blobs to new packs meanwhile: list again until there is no new pack.
  for (;;) {
    const fresh = listPacks(paths).filter((pack) => !seen.has(pack.id));
    if (fresh.length === 0) return;
    for (const pack of fresh) {
      seen.add(pack.id);
      const scan = await PackScan.open(paths, pack, { block, watch });
      if (scan === undefined) continue;
      try {
        yield* scanPack(scan, (entry) => largeItem(paths, pack.id, entry));
      } finally {
        await scan.close();
      }
    }
  }
}

async function* scanPack(
  scan: PackScan,
  readLarge: (entry: LargeEntry) => Promise<ScanItem[]>,
): AsyncGenerator<Iterable<ScanItem>> {
  for (;;) {
    // Reason for the end of the run: a stand-in, a used-up block, or the end of the pack.
    let last: ReturnType<PackScan["next"]>;
    let isRead = false;
    yield (function* (): Generator<ScanItem> {
      for (last = scan.next(); last !== undefined && last !== "more"; last = scan.next()) {
        if (last.type === "stand-in") break;
        yield last;
      }
      isRead = true;
    })();
    if (!isRead) throw runLeft();
    if (last === undefined) return;
    if (last === "more") await scan.more();
    else if (last.type === "stand-in") yield await readLarge(last.entry);
  }
}

/** A scan that silently skips a part of a book would report the book as complete. */
function runLeft(): RollbookError {
  return new RollbookError(
    "run-left",
    {},
    "a run of a scan was left before its end, and the next one asked for. Go through each run, or end the scan.",
  );
}

/** Packs of a book in storage order: by the start time of their sessions. */
export function listPacks(paths: BookPaths): PackName[] {
  const packs = new Map<string, PackName>();
  // A listing may miss a file that is renamed meanwhile, as packs are when sealed. Each pack is renamed once, so list
  // twice.
  for (const file of [...readdirSync(paths.packs), ...readdirSync(paths.packs)]) {
    const pack = parsePackName(file);
    if (pack !== undefined && packs.get(pack.id)?.sealed !== true) packs.set(pack.id, pack);
  }
  return [...packs.values()].sort((a, b) => (a.id < b.id ? -1 : 1));
}

async function largeItem(paths: BookPaths, pack: string, entry: LargeEntry): Promise<ScanItem[]> {
  const finding = await largeFault(paths, pack, entry);
  // gc removes a pack with its large files; the remaining blobs are then in a newer pack.
  if (finding?.code === "missing-large" && !packExists(paths, pack)) return [];
  if (finding !== undefined) return [{ type: "damage", finding }];
  const location: Location = { file: largePath(pack, entry), offset: 0, length: entry.bytes };
  return [{ type: "large", digest: entry.digest, kind: entry.kind, location }];
}

function packExists(paths: BookPaths, id: string): boolean {
  // In this order, a rename between the two checks cannot hide the pack.
  return existsSync(paths.openPack(id)) || existsSync(paths.sealedPack(id));
}

/** Receives the hash over the entries of a pack, at the entry counts that it wants. */
export interface ChainWatch {
  wants(pack: string, entries: number): boolean;
  note(pack: string, entries: number, chain: string): void;
  /** Called when a pack was read to its end. */
  scanned(pack: string): void;
}

export type PackItem = ScanItem | { readonly type: "stand-in"; readonly entry: LargeEntry };

/** Scans one pack: header first, then blobs, then the footer and nothing more. The caller reads large files. */
export class PackScan {
  readonly #file: string;
  readonly #pack: string;
  readonly #reader: PackReader;
  readonly #sealed: boolean;
  readonly #chain = new PackChain();
  readonly #findings: Finding[] = [];
  readonly #watch: ChainWatch | undefined;
  #footed = false;
  #ended = false;

  private constructor(
    pack: string,
    { reader, sealed, watch }: { reader: PackReader; sealed: boolean; watch: ChainWatch | undefined },
  ) {
    this.#pack = pack;
    this.#watch = watch;
    this.#reader = reader;
    this.#sealed = sealed;
    this.#file = `packs/${pack}.${sealed ? "pack" : "open"}`;
  }

  static async open(
    paths: BookPaths,
    pack: PackName,
    { block, watch }: { block: ScanBlock; watch?: ChainWatch | undefined },
  ): Promise<PackScan | undefined> {
    const opened = await openPack(paths, pack, { block });
    return opened === undefined ? undefined : new PackScan(pack.id, { ...opened, watch });
  }

  more(): Promise<void> {
    return this.#reader.more();
  }

  close(): Promise<void> {
    return this.#reader.close();
  }

  /** The next item; "more" if the caller must await `more`; undefined at the end. */
  next(): PackItem | "more" | undefined {
    for (;;) {
      const finding = this.#findings.shift();
      if (finding !== undefined) return { type: "damage", finding };
      if (this.#ended) return undefined;
      const step = this.#reader.next();
      if (step === "more") return step;
      const item = step === undefined ? this.#end() : this.#take(step);
      if (item !== undefined) return item;
    }
  }

  #take(step: EntryStep | DamageStep): PackItem | undefined {
    if (step.type === "damage") return this.#takeDamage(step);
    if (this.#footed) this.#find("bad-footer", step, "an entry stands behind the footer");
    if (step.kind === PACK_FOOTER_KIND) return this.#takeFooter(step);
    this.#chain.addHex(step.hex);
    this.#mark();
    if (step.offset === 0 || step.kind === PACK_HEADER_KIND) return this.#takeHeader(step);
    if (step.kind === PACK_LARGE_KIND) return this.#takeStandIn(step);
    const location = { file: this.#file, offset: step.payloadAt, length: step.bytes.length };
    return { type: "blob", digest: step.digest, hex: step.hex, kind: step.kind, bytes: step.bytes, location };
  }

  #takeHeader(step: EntryStep): undefined {
    if (step.kind !== PACK_HEADER_KIND || step.offset > 0)
      this.#find("bad-pack-header", step, "a pack must begin with its header, and hold no other");
    else if (parsePackHeader(step.bytes)?.pack !== this.#pack)
      this.#find("bad-pack-header", step, "the header names another pack: the file was renamed");
  }

  #takeStandIn(step: EntryStep): PackItem | undefined {
    const entry = parseLargeEntry(step.bytes);
    if (entry !== undefined) return { type: "stand-in", entry };
    this.#find("bad-large-entry", step, "this entry does not name a large blob");
    return undefined;
  }

  #takeDamage(step: DamageStep): undefined {
    // The end of an open pack may be incomplete during a write; recovery checks it once the writer is gone.
    if (!this.#sealed && step.code === "truncated") return;
    const { expected, kind, actual } = step;
    if (expected !== undefined) {
      this.#chain.add(expected);
      this.#mark();
    }
    this.#find(step.code, step, step.message, given({ expected, kind, actual }));
  }

  #takeFooter(step: EntryStep): undefined {
    this.#footed = true;
    const said = parseFooter(step.bytes);
    const found = this.#chain.footer();
    if (said?.entries === found.entries && said.chain === found.chain) return;
    const text = said === undefined ? "nothing readable" : `${said.entries} entries, ${said.chain}`;
    this.#find("bad-footer", step, `the footer says ${text}; found ${found.entries}, ${found.chain}`);
  }

  #mark(): void {
    const { entries } = this.#chain;
    if (this.#watch?.wants(this.#pack, entries) === true)
      this.#watch.note(this.#pack, entries, this.#chain.state(this.#pack).chain);
  }

  #end(): undefined {
    this.#ended = true;
    this.#watch?.scanned(this.#pack);
    const { size } = this.#reader;
    if (this.#sealed && !this.#footed)
      this.#find("missing-footer", { offset: size, end: size }, "a sealed pack ends without a footer");
  }

  #find(
    code: Finding["code"],
    { offset, end }: { offset: number; end: number },
    message: string,
    blob: Pick<Finding, "expected" | "kind" | "actual"> = {},
  ): void {
    this.#findings.push({ code, file: this.#file, offset, length: end - offset, message, ...blob });
  }
}

function checkNames(paths: BookPaths): Finding[] {
  const findings: Finding[] = [];
  const bytes = readFileSync(paths.bookJson);
  const fault = bookFault(bytes);
  const at = { offset: 0, length: bytes.length };
  if (fault !== undefined)
    findings.push({ code: "bad-book", file: "book.json", ...at, message: `book.json: ${fault}` });
  const strangers = [
    ...readdirSync(paths.packs)
      .filter((name) => !parsePackName(name))
      .map((name) => join("packs", name)),
    ...readdirSync(paths.large)
      .filter((name) => !parseLargeName(name))
      .map((name) => join("large", name)),
  ];
  for (const file of strangers)
    findings.push({
      code: "unexpected-file",
      file,
      offset: 0,
      length: 0,
      message: "not a name the book uses",
    });
  return findings;
}
