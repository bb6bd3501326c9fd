/** Reads a whole book and checks every byte of it: book.json, packs, large files.
 *  In: the book's paths. Out: blobs and damage in storage order. Takes no lock and changes nothing: packs that
 *  grow or vanish meanwhile (writers, gc) are no damage. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Finding, Location, ScanItem } from "./blob-store.ts";
import { isMissing } from "./files.ts";
import { largeFault, largePath } from "./large-files.ts";
import { PACK_FOOTER_KIND, PACK_HEADER_KIND, PACK_LARGE_KIND } from "./pack-format.ts";
import { type BookPaths, type PackName, parseLargeName, parsePackName } from "./pack-names.ts";
import { PackReader, type PackStep, ScanBlocks } from "./pack-reader.ts";
import { bookFault, PackChain, parseFooter, parseLargeEntry, parsePackHeader } from "./pack-records.ts";

type EntryStep = Extract<PackStep, { type: "entry" }>;
type DamageStep = Extract<PackStep, { type: "damage" }>;

export async function* scanBook(paths: BookPaths): AsyncGenerator<ScanItem> {
  for (const finding of checkNames(paths)) yield { type: "damage", finding };
  const blocks = new ScanBlocks();
  const seen = new Set<string>();
  // gc moves blobs to packs that come up meanwhile: list again until nothing is new.
  for (;;) {
    const fresh = listPacks(paths).filter((pack) => !seen.has(pack.id));
    if (fresh.length === 0) return;
    for (const pack of fresh) {
      seen.add(pack.id);
      yield* scanPack(paths, pack, blocks);
    }
  }
}

/** The packs of a book in storage order, which is the order of their creation. */
export function listPacks(paths: BookPaths): PackName[] {
  const packs = new Map<string, PackName>();
  for (const file of readdirSync(paths.packs).sort()) {
    const pack = parsePackName(file);
    if (pack !== undefined) packs.set(pack.id, pack);
  }
  return [...packs.values()];
}

/** Every entry of one pack, with header, footer and large files checked. */
export async function* scanPack(
  paths: BookPaths,
  pack: PackName,
  blocks = new ScanBlocks(),
): AsyncGenerator<ScanItem> {
  const opened = await openPack(paths, pack, blocks);
  if (opened === undefined) return;
  const { reader, sealed } = opened;
  const checker = new PackChecker(pack, { sealed, size: reader.size });
  try {
    for (;;) {
      const step = reader.next();
      if (step === undefined) break;
      if (step === "more") {
        await reader.more();
        continue;
      }
      if (step.type === "entry" && checker.admits(step)) {
        if (step.kind !== PACK_LARGE_KIND) yield blobItem(step, checker.file);
        else {
          const item = await largeItem(paths, pack, step);
          if (item !== undefined) yield item;
        }
      }
      for (const finding of checker.takeFindings(step)) yield { type: "damage", finding };
    }
    for (const finding of checker.end()) yield { type: "damage", finding };
  } finally {
    await reader.close();
  }
}

function blobItem(step: EntryStep, file: string): ScanItem {
  const location = { file, offset: step.payloadAt, length: step.bytes.length };
  return { type: "blob", digest: step.digest, kind: step.kind, bytes: step.bytes, location };
}

async function largeItem(paths: BookPaths, pack: PackName, step: EntryStep): Promise<ScanItem | undefined> {
  const entry = parseLargeEntry(step.bytes);
  const file = `packs/${pack.id}`;
  if (entry === undefined)
    return damage({
      code: "bad-large-entry",
      ...range(step, file),
      message: "not a stand-in for a large blob",
    });
  const finding = await largeFault(paths, pack.id, entry);
  // A pack collected by gc takes its large files along; the blobs worth keeping are in a newer pack by then.
  if (finding?.code === "missing-large" && !packExists(paths, pack.id)) return undefined;
  if (finding !== undefined) return damage(finding);
  const location: Location = { file: largePath(pack.id, entry), offset: 0, length: entry.bytes };
  return { type: "large", digest: entry.digest, kind: entry.kind, location };
}

function packExists(paths: BookPaths, id: string): boolean {
  return existsSync(paths.sealedPack(id)) || existsSync(paths.openPack(id));
}

function damage(finding: Finding): ScanItem {
  return { type: "damage", finding };
}

function range({ offset, end }: { offset: number; end: number }, file: string) {
  return { file, offset, length: end - offset };
}

/** What the steps of one pack amount to: header first, then blobs, then the footer and nothing more. */
class PackChecker {
  readonly file: string;
  readonly #pack: PackName;
  readonly #sealed: boolean;
  readonly #size: number;
  readonly #chain = new PackChain();
  #findings: Finding[] = [];
  #footed = false;
  #end = 0;

  constructor(pack: PackName, { sealed, size }: { sealed: boolean; size: number }) {
    this.#pack = pack;
    this.#sealed = sealed;
    this.#size = size;
    this.file = `packs/${pack.id}.${sealed ? "pack" : "open"}`;
  }

  /** True if the entry is a blob (or stands for one) in its right place; else findings say why not. */
  admits(step: EntryStep): boolean {
    const isFirst = step.offset === 0;
    this.#end = step.end;
    if (this.#footed) this.#find("bad-footer", step, "an entry stands behind the footer");
    if (step.kind === PACK_FOOTER_KIND) {
      this.#checkFooter(step);
      return false;
    }
    this.#chain.add(step.digest);
    if ((step.kind === PACK_HEADER_KIND) !== isFirst)
      this.#find("bad-pack-header", step, isFirst ? "no pack header" : "a pack header inside a pack");
    if (step.kind !== PACK_HEADER_KIND) return true;
    if (parsePackHeader(step.bytes)?.pack !== this.#pack.id)
      this.#find("bad-pack-header", step, "the pack header names another pack; the file was renamed");
    return false;
  }

  takeFindings(step: PackStep): Finding[] {
    if (step.type === "damage") this.#addDamage(step);
    const findings = this.#findings;
    this.#findings = [];
    return findings;
  }

  end(): Finding[] {
    if (this.#size === 0 && this.#sealed) this.#find("truncated", { offset: 0, end: 0 }, "the pack is empty");
    else if (this.#sealed && !this.#footed)
      this.#find(
        "missing-footer",
        { offset: this.#end, end: this.#size },
        "a sealed pack ends without a footer",
      );
    return this.#findings;
  }

  #addDamage(step: DamageStep): void {
    // The end of an open pack may be in the midst of being written; recovery judges it once the writer is gone.
    if (!this.#sealed && step.code === "truncated") return;
    const { expected, actual } = step;
    if (expected !== undefined) this.#chain.add(expected);
    this.#findings.push({
      code: step.code,
      ...range(step, this.file),
      message: step.message,
      ...(expected === undefined ? {} : { expected }),
      ...(actual === undefined ? {} : { actual }),
    });
  }

  #checkFooter(step: EntryStep): void {
    this.#footed = true;
    const said = parseFooter(step.bytes);
    const found = this.#chain.footer();
    if (said?.entries === found.entries && said.chain === found.chain) return;
    const text = said === undefined ? "nothing readable" : `${said.entries} entries, ${said.chain}`;
    this.#find("bad-footer", step, `the footer says ${text}; found ${found.entries}, ${found.chain}`);
  }

  #find(code: Finding["code"], at: { offset: number; end: number }, message: string): void {
    this.#findings.push({ code, ...range(at, this.file), message });
  }
}

async function openPack(
  paths: BookPaths,
  pack: PackName,
  blocks: ScanBlocks,
): Promise<{ reader: PackReader; sealed: boolean } | undefined> {
  // The writer may seal it, or gc remove it, between listing and opening.
  for (const sealed of pack.sealed ? [true] : [false, true]) {
    const path = sealed ? paths.sealedPack(pack.id) : paths.openPack(pack.id);
    try {
      return { reader: await PackReader.open(path, { blocks }), sealed };
    } catch (error) {
      if (!isMissing(error)) throw error;
    }
  }
  return undefined;
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
