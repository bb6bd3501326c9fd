import {
  closeSync,
  cpSync,
  fstatSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Digest, manualClock } from "../base/index.ts";
import { type Finding, itemsOf } from "./blob/blob-store.ts";
import { type Book, openBook } from "./book.ts";
import { walkHeaders } from "./pack/pack-headers.ts";
import { bookPaths } from "./pack/pack-names.ts";
import { scanBook } from "./pack/scan-book.ts";

let scratch = "";
let made = 0;
beforeAll(() => {
  scratch = mkdtempSync(join(tmpdir(), "rollbook-damage-"));
});
afterAll(() => rmSync(scratch, { recursive: true, force: true }));
const fresh = () => join(scratch, String(made++));
const clock = manualClock(1_700_000_000_000);
const open = (root: string) => openBook(root, { clock, packBytes: 700, largeBytes: 90 });

/** Two packs and a large file, every kind of padding. */
function fill(book: Book): Digest[] {
  const sizes = [0, 1, 7, 8, 33, 100];
  return sizes.map((size, i) => book.put(`kind${"x".repeat(i)}`, new Uint8Array(size).fill(i + 1)));
}

async function findingsOf(root: string): Promise<Finding[]> {
  const findings: Finding[] = [];
  for await (const item of itemsOf(scanBook(bookPaths(root))))
    if (item.type === "damage") findings.push(item.finding);
  return findings;
}

function entryEnds(path: string): number[] {
  const fd = openSync(path, "r");
  const ends: number[] = [];
  walkHeaders(fd, { from: 0, size: fstatSync(fd).size }, ({ offset, bytes }) => ends.push(offset + bytes));
  closeSync(fd);
  return ends;
}

const filesOf = (root: string) => [
  "book.json",
  ...readdirSync(join(root, "packs")).map((name) => join("packs", name)),
  ...readdirSync(join(root, "large")).map((name) => join("large", name)),
];

describe("scan", () => {
  it("finds every change of a single byte, wherever it is, and names the file", async () => {
    const root = fresh();
    const book = await open(root);
    fill(book);
    await book.close();
    const files = filesOf(root);
    expect(files.filter((file) => file.endsWith(".pack"))).toHaveLength(2);
    expect(files.filter((file) => file.startsWith("large"))).toHaveLength(1);
    expect(await findingsOf(root)).toEqual([]);
    let changes = 0;
    for (const file of files) {
      const whole = readFileSync(join(root, file));
      for (let at = 0; at < whole.length; at++) {
        const changed = Buffer.from(whole);
        // A different change at each byte: a low bit, a high bit, all bits, to zero.
        changed[at] = [changed[at]! ^ 1, changed[at]! ^ 0x80, ~changed[at]!, 0][at % 4]!;
        if (changed[at] === whole[at]) changed[at] = changed[at]! ^ 0x10;
        writeFileSync(join(root, file), changed);
        const findings = await findingsOf(root);
        expect(
          findings.map((finding) => finding.file),
          `${file} at ${at}`,
        ).toContain(file);
        changes++;
      }
      writeFileSync(join(root, file), whole);
    }
    expect(changes).toBeGreaterThan(1500);
    expect(await findingsOf(root)).toEqual([]);
  });

  it("finds a cut, an addition, a renamed pack, a missing or foreign file", async () => {
    const root = fresh();
    const book = await open(root);
    fill(book);
    await book.close();
    const [, pack, other, large] = filesOf(root) as [string, string, string, string];
    const whole = readFileSync(join(root, pack));
    const codesAfter = async (change: () => void) => {
      change();
      return (await findingsOf(root)).map((finding) => finding.code);
    };
    for (let length = 0; length < whole.length; length += 8)
      expect(await codesAfter(() => writeFileSync(join(root, pack), whole.subarray(0, length)))).toContain(
        "missing-footer",
      );
    for (const extra of [Buffer.alloc(1), Buffer.alloc(8), whole])
      expect(
        await codesAfter(() => writeFileSync(join(root, pack), Buffer.concat([whole, extra]))),
      ).not.toEqual([]);
    writeFileSync(join(root, pack), whole);
    const moved = pack.replace("000001", "000009");
    expect(await codesAfter(() => renameSync(join(root, pack), join(root, moved)))).toContain(
      "bad-pack-header",
    );
    renameSync(join(root, moved), join(root, pack));
    const otherWhole = readFileSync(join(root, other));
    expect(await codesAfter(() => writeFileSync(join(root, other), whole))).toContain("bad-pack-header");
    writeFileSync(join(root, other), otherWhole);
    const bytes = readFileSync(join(root, large));
    for (const wrong of [
      bytes.subarray(1),
      bytes.subarray(0, -1),
      Buffer.alloc(0),
      Buffer.concat([bytes, bytes]),
    ])
      expect(await codesAfter(() => writeFileSync(join(root, large), wrong))).toEqual(["digest-mismatch"]);
    expect(await codesAfter(() => rmSync(join(root, large)))).toEqual(["missing-large"]);
    writeFileSync(join(root, large), bytes);
    expect(await codesAfter(() => undefined)).toEqual([]);
    writeFileSync(join(root, "packs", "stranger"), "");
    expect(await codesAfter(() => undefined)).toEqual(["unexpected-file"]);
  });

  it("gives the blobs around damage, and get names file, offset and both digests", async () => {
    const root = fresh();
    const book = await openBook(root, { clock });
    const digests = Array.from({ length: 9 }, (_, i) => book.put("test.kind", new Uint8Array(100).fill(i)));
    await book.close();
    const file = filesOf(root)[1]!;
    const bytes = readFileSync(join(root, file));
    const at = bytes.indexOf(Buffer.alloc(100, 4));
    bytes[at + 50] = 99;
    writeFileSync(join(root, file), bytes);
    const reader = await openBook(root, { clock, mode: "read" });
    const seen: Digest[] = [];
    const damage: Finding[] = [];
    for await (const item of reader.scan())
      if (item.type === "damage") damage.push(item.finding);
      else seen.push(item.digest);
    expect(seen).toEqual(digests.filter((_, i) => i !== 4));
    expect(damage).toMatchObject([{ code: "digest-mismatch", file, expected: digests[4] }]);
    expect(damage[0]!.actual).toMatch(/^sha256:/);
    const { offset } = damage[0]!;
    expect(at).toBeGreaterThan(offset);
    await expect(reader.get(digests[4]!)).rejects.toMatchObject({
      code: "digest-mismatch",
      fields: { file, offset, expected: digests[4], actual: damage[0]!.actual },
    });
    await reader.close();
  });
});

describe("recovery", () => {
  /** A book as a kill leaves it: the files of an unclosed session. */
  async function crashed(blobs: number): Promise<{ root: string; file: string; digests: Digest[] }> {
    const [live, root] = [fresh(), fresh()];
    const book = await openBook(live, { clock, largeBytes: 90 });
    const digests = Array.from({ length: blobs }, (_, i) =>
      book.put("test.kind", new Uint8Array(i === 1 ? 100 : 40 + i).fill(i)),
    );
    await book.flush();
    cpSync(live, root, { recursive: true });
    await book.close();
    return { root, file: filesOf(root)[1]!, digests };
  }

  it("at every length of a torn pack, keeps every whole blob, sets the rest aside, and seals", async () => {
    const { root, file, digests } = await crashed(4);
    const whole = readFileSync(join(root, file));
    const ends = entryEnds(join(root, file)).slice(1);
    // Every third length covers every alignment; the exact ends matter most.
    const lengths = [...Array(Math.ceil(whole.length / 3)).keys()].map((third) => third * 3);
    for (const length of [...lengths, ...ends.flatMap((end) => [end - 1, end])]) {
      const copy = fresh();
      cpSync(root, copy, { recursive: true });
      truncateSync(join(copy, file), length);
      const book = await openBook(copy, { clock });
      const kept: Digest[] = [];
      for await (const item of book.scan()) {
        if (item.type === "damage") throw new Error(JSON.stringify(item));
        kept.push(item.digest);
      }
      expect(kept).toEqual(digests.slice(0, ends.filter((end) => end <= length).length));
      const [report] = book.recovered;
      expect(report).toMatchObject({ blobs: kept.length, damage: [] });
      const torn =
        report!.tornFile === undefined ? Buffer.alloc(0) : readFileSync(join(copy, report!.tornFile));
      expect(torn).toHaveLength(report!.tornBytes);
      expect(whole.subarray(length - torn.length, length).equals(torn)).toBe(true);
      await book.close();
      expect(readdirSync(join(copy, "packs")).filter((name) => !name.endsWith(".pack"))).toEqual([]);
      expect(readdirSync(join(copy, "locks"))).toEqual(["book.lock"]);
      rmSync(copy, { recursive: true });
    }
  });

  it("of a damaged last entry sets it aside; of one with whole entries behind it keeps the pack as it is", async () => {
    const { root, file, digests } = await crashed(5);
    const whole = readFileSync(join(root, file));
    const damageAt = async (fill: number) => {
      const copy = fresh();
      cpSync(root, copy, { recursive: true });
      const bytes = Buffer.from(whole);
      bytes[bytes.indexOf(Buffer.alloc(40, fill)) + 3] = 77;
      writeFileSync(join(copy, file), bytes);
      const book = await openBook(copy, { clock });
      return { book, same: () => readFileSync(join(copy, file)).equals(bytes) };
    };
    const last = await damageAt(4);
    expect(last.book.recovered).toMatchObject([{ blobs: 4, damage: [] }]);
    expect(await last.book.get(digests[4]!)).toBeUndefined();
    await last.book.close();
    const middle = await damageAt(2);
    expect(middle.book.recovered).toMatchObject([
      { tornBytes: 0, damage: [{ code: "digest-mismatch", file }] },
    ]);
    expect(middle.same()).toBe(true);
    expect(await middle.book.get(digests[4]!)).toBeDefined();
    await expect(middle.book.get(digests[2]!)).rejects.toMatchObject({ code: "digest-mismatch" });
    await middle.book.close();
    expect(middle.same()).toBe(true);
  });

  it("leaves the pack of a living writer alone", async () => {
    const root = fresh();
    const writer = await openBook(root, { clock });
    const digest = writer.put("test.kind", Uint8Array.of(1));
    const second = await openBook(root, { clock });
    expect(second.recovered).toEqual([]);
    await second.close();
    await writer.flush();
    await writer.close();
    const reader = await openBook(root, { clock, mode: "read" });
    expect(await reader.get(digest)).toBeDefined();
    await reader.close();
  });
});
