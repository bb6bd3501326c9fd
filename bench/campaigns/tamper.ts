/** Changes every field of every record of a real book, and random bytes of its files: verify must name what broke.
 *  A changed field is sealed again with a digest that fits, as a forger would; a changed byte is left as it fell. */
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { canonicalize } from "../../src/base/canonical-json.ts";
import { systemClock } from "../../src/base/clock.ts";
import type { Digest } from "../../src/base/digest.ts";
import { type Rng, rngFrom } from "../../src/base/rng.ts";
import { recordType } from "../../src/contract/index.ts";
import { type VerifyReport, verifyBook } from "../../src/keep/verify/index.ts";
import { memoryStore, openBook } from "../../src/store/index.ts";
import type { Campaign } from "../support/programs.ts";
import { fillBook } from "../support/small-book.ts";

const BYTE_CHANGES = 10_000;

export const campaign: Campaign = {
  summary:
    "every field and 10 000 random bytes of a real book are changed; verify names the broken record each time",
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
      console.error(
        `  fields: ${fields.passed} named, ${fields.failed} missed; bytes: ${bytes.passed} named, ${bytes.failed} missed`,
      );
      return { passed: fields.passed + bytes.passed, failed: fields.failed + bytes.failed };
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

/** The report names the file, and where the byte lay in a blob, that blob's place or digest. */
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

/** What is the truth: packs, large files and book.json. Index and locks are derived. */
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
