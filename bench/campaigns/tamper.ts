/** Changes every field of every record of a real book, and random bytes of its files: verify must name the damage.
 *  A changed field is sealed again with a matching digest, as a forger would; a changed byte is left as it is.
 *  Then forges the packs of a book with heads: entries changed, removed, added, swapped and cut off, all with valid
 *  checksums; packs removed; the book restored to an earlier state. With the last head at hand, verify must find each
 *  forgery, with or without the catalog. */
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { canonicalize } from "../../src/base/canonical-json.ts";
import { manualClock, systemClock } from "../../src/base/clock.ts";
import type { Digest } from "../../src/base/digest.ts";
import { parseId } from "../../src/base/ids.ts";
import { type Rng, rngFrom } from "../../src/base/rng.ts";
import { type EnvironmentKey, recordType, seal, Task } from "../../src/contract/index.ts";
import { type VerifyReport, verifyBook } from "../../src/keep/verify/index.ts";
import { memoryStore, openBook, readLastHead } from "../../src/store/index.ts";
import { entriesOf, type ForgedEntry, forgePack, whileForged } from "../support/forge-pack.ts";
import type { Campaign } from "../support/programs.ts";
import { fillBook } from "../support/small-book.ts";

const BYTE_CHANGES = 10_000;

export const campaign: Campaign = {
  summary:
    "every field and 10 000 random bytes of a real book are changed, and its packs are forged; verify finds each change",
  async run({ scale, seed }) {
    const directory = mkdtempSync(join(tmpdir(), "rollbook-tamper-"));
    try {
      const book = join(directory, "book");
      await fillBook(book);
      const rng = rngFrom(seed);
      const fields = await changeFields(book, { scale, rng: rng.split("fields") });
      const bytes = await changeBytes(book, join(directory, "copy"), {
        changes: Math.ceil(BYTE_CHANGES * scale),
        rng: rng.split("bytes"),
      });
      const forged = await forgePacks(join(directory, "headed"), { scale, rng: rng.split("packs") });
      console.error(
        `  fields: ${fields.passed} named, ${fields.failed} missed; bytes: ${bytes.passed} named, ${bytes.failed} missed; packs: ${forged.passed} found, ${forged.failed} missed`,
      );
      return {
        passed: fields.passed + bytes.passed + forged.passed,
        failed: fields.failed + bytes.failed + forged.failed,
      };
    } finally {
      rmSync(directory, { recursive: true, force: true });
    }
  },
};

interface Stored {
  digest: Digest;
  kind: string;
  bytes: Uint8Array;
  file: string;
  offset: number;
  /** Padding to the next multiple of 8 belongs to the entry before it. */
  end: number;
}

async function changeFields(directory: string, { scale, rng }: { scale: number; rng: Rng }) {
  const blobs = await readBlobs(directory);
  const tally = { passed: 0, failed: 0 };
  for (const blob of blobs.filter((each) => recordType(each.kind) !== undefined)) {
    for (const changed of variants(JSON.parse(Buffer.from(blob.bytes).toString()))) {
      if (rng.float() >= scale) continue;
      const store = memoryStore();
      for (const each of blobs) if (each !== blob) store.put(each.kind, each.bytes);
      const forged = store.put(blob.kind, Buffer.from(canonicalize(changed.value)));
      const named = names(await verifyBook(store), [blob.digest, forged]);
      count(tally, named, `${blob.kind} ${changed.what}`);
    }
  }
  return tally;
}

async function changeBytes(directory: string, copy: string, { changes, rng }: { changes: number; rng: Rng }) {
  const blobs = await readBlobs(directory);
  const files = bookFiles(directory);
  const total = files.reduce((sum, file) => sum + statSync(join(directory, file)).size, 0);
  const tally = { passed: 0, failed: 0 };
  cpSync(directory, copy, { recursive: true });
  for (let change = 0; change < changes; change++) {
    let at = rng.below(total);
    const file = files.find((each) => {
      const size = statSync(join(directory, each)).size;
      if (at < size) return true;
      at -= size;
      return false;
    })!;
    const original = readFileSync(join(directory, file));
    const broken = Buffer.from(original);
    broken[at] = broken[at]! ^ (1 + rng.below(255));
    writeFileSync(join(copy, file), broken);
    const struck = blobs.find((each) => each.file === file && at < each.end);
    count(tally, await namesDamage(copy, file, struck), `${file} byte ${at}`);
    writeFileSync(join(copy, file), original);
  }
  return tally;
}

/** A book of several sessions with heads, and a copy of the book after each session. */
async function headedBook(directory: string): Promise<{ book: string; copies: string[]; head: Digest }> {
  const book = join(directory, "book");
  const signer = await fillBook(book, { withHeads: true });
  const copies: string[] = [];
  for (const session of [1, 2, 3]) {
    const copy = join(directory, `copy-${session}`);
    cpSync(book, copy, { recursive: true });
    copies.push(copy);
    const clock = manualClock(1_700_000_000_000 + session);
    const store = await openBook(book, { clock, sign: () => (head) => signer.signHead(head) });
    const task = seal(Task, {
      ...{ id: parseId(`late-${session}`), environment: "env.bench@1" as EnvironmentKey },
      ...{ payload: { session }, dataSource: "synthetic" },
    });
    const attestation = signer.attest([task.digest]);
    for (const { kind, bytes } of [task, attestation]) store.put(kind, bytes);
    await store.close();
  }
  return { book, copies, head: readLastHead(book)! };
}

/** Every attack on packs that keeps checksums valid, for every entry of every pack. */
async function forgePacks(directory: string, { scale, rng }: { scale: number; rng: Rng }) {
  const { book, copies, head } = await headedBook(directory);
  const tally = { passed: 0, failed: 0 };
  const isFound = async (root: string) => {
    const store = await openBook(root, { clock: systemClock, mode: "read" });
    try {
      return (await verifyBook(store, { expect: head })).problems.length > 0;
    } finally {
      await store.close();
    }
  };
  if (await isFound(book)) throw new Error("the book with heads is not sound");
  for (const name of readdirSync(join(book, "packs"))) {
    const path = join(book, "packs", name);
    const entries = await entriesOf(path);
    for (const { what, forged } of forgeries(entries)) {
      if (rng.float() >= scale) continue;
      const found = await whileForged(
        path,
        () => forgePack(path, forged),
        () => isFound(book),
      );
      count(tally, found, `${name} ${what}`);
    }
    const gone = await whileForged(
      path,
      () => rmSync(path),
      () => isFound(book),
    );
    count(tally, gone, `${name} removed`);
  }
  for (const copy of copies) count(tally, await isFound(copy), "the book put back to an earlier state");
  return tally;
}

function* forgeries(
  entries: readonly ForgedEntry[],
): Generator<{ what: string; forged: readonly ForgedEntry[] }> {
  for (const [i, entry] of entries.entries()) {
    const at = `entry ${i} ${entry.kind}`;
    if (recordType(entry.kind) !== undefined)
      for (const { what, value } of variants(JSON.parse(Buffer.from(entry.payload).toString())))
        yield {
          what: `${at} ${what}`,
          forged: entries.with(i, { ...entry, payload: Buffer.from(canonicalize(value)) }),
        };
    else if (entry.payload.length > 0)
      yield { what: `${at} changed`, forged: entries.with(i, { ...entry, payload: flipped(entry.payload) }) };
    if (i === 0) continue;
    yield { what: `${at} removed`, forged: entries.toSpliced(i, 1) };
    yield { what: `cut off from ${at} on`, forged: entries.slice(0, i) };
    if (i > 1) yield { what: `${at} swapped`, forged: entries.with(i, entries[i - 1]!).with(i - 1, entry) };
  }
}

function flipped(bytes: Uint8Array): Uint8Array {
  const changed = Uint8Array.from(bytes);
  changed[changed.length - 1]! ^= 1;
  return changed;
}

/** The report must name the file. If the byte was in a blob, it must also name the blob's place or digest. */
async function namesDamage(directory: string, file: string, struck: Stored | undefined): Promise<boolean> {
  let problems: VerifyReport["problems"];
  try {
    const book = await openBook(directory, { clock: systemClock, mode: "read" });
    problems = (await verifyBook(book)).problems;
    await book.close();
  } catch (error) {
    return error instanceof Error && error.message.includes(file);
  }
  if (struck === undefined) return problems.some((each) => each.where.includes(file));
  return problems.some((each) => {
    const [, offset] = /at (\d+)$/.exec(each.where) ?? [];
    const inside =
      each.where.includes(file) && Number(offset) <= struck.end && Number(offset) > struck.offset - 512;
    return inside || each.digest === struck.digest || each.message.includes(struck.digest);
  });
}

function names(report: VerifyReport, digests: readonly Digest[]): boolean {
  return report.problems.some((each) =>
    digests.some((digest) => each.digest === digest || each.message.includes(digest)),
  );
}

function count(tally: { passed: number; failed: number }, named: boolean, what: string): void {
  if (named) tally.passed++;
  else {
    tally.failed++;
    console.error(`  missed: ${what}`);
  }
}

async function readBlobs(directory: string): Promise<Stored[]> {
  const book = await openBook(directory, { clock: systemClock, mode: "read" });
  const blobs: Stored[] = [];
  for await (const item of book.scan()) {
    if (item.type !== "blob") throw new Error(`the book is not sound: ${JSON.stringify(item)}`);
    const { file, offset, length } = item.location;
    blobs.push({
      digest: item.digest,
      kind: item.kind,
      bytes: item.bytes.slice(),
      file,
      offset,
      end: Math.ceil((offset + length) / 8) * 8,
    });
  }
  await book.close();
  return blobs;
}

/** The primary files: packs, large files and book.json. Index and locks are derived. */
function bookFiles(directory: string): string[] {
  const packs = readdirSync(join(directory, "packs")).map((name) => join("packs", name));
  const large = readdirSync(join(directory, "large")).map((name) => join("large", name));
  return ["book.json", ...packs, ...large].sort();
}

/** The record with one field changed, dropped or added, for every field at every depth. */
function* variants(record: unknown): Generator<{ what: string; value: unknown }> {
  for (const path of paths(record)) {
    const at = path.join(".");
    const here = path.reduce<unknown>((value, key) => (value as Record<string, unknown>)[key], record);
    if (path.length > 0) yield { what: `without ${at}`, value: edit(record, path, undefined) };
    if (typeof here === "string")
      yield {
        what: `${at} changed`,
        value: edit(
          record,
          path,
          here.replace(/.$/u, (last) => (last === "0" ? "1" : "0")),
        ),
      };
    if (typeof here === "number") yield { what: `${at} changed`, value: edit(record, path, here + 1) };
    if (typeof here === "boolean") yield { what: `${at} changed`, value: edit(record, path, !here) };
    if (here === null) yield { what: `${at} changed`, value: edit(record, path, 0) };
    if (Array.isArray(here) && here.length > 0)
      yield { what: `${at} doubled`, value: edit(record, path, [...here, here.at(-1)]) };
    else if (typeof here === "object" && here !== null)
      yield { what: `${at} with one more field`, value: edit(record, path, { ...here, extra: 1 }) };
  }
}

function* paths(value: unknown, path: string[] = []): Generator<string[]> {
  yield path;
  if (typeof value !== "object" || value === null) return;
  for (const [key, child] of Object.entries(value)) yield* paths(child, [...path, key]);
}

function edit(record: unknown, path: readonly string[], value: unknown): unknown {
  if (path.length === 0) return value;
  const copy = structuredClone(record) as Record<string, unknown>;
  const parent = path
    .slice(0, -1)
    .reduce<unknown>((each, key) => (each as Record<string, unknown>)[key], copy) as Record<string, unknown>;
  const last = path.at(-1)!;
  if (value !== undefined) parent[last] = value;
  else if (Array.isArray(parent)) parent.splice(Number(last), 1);
  else delete parent[last];
  return copy;
}
