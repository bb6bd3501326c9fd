import {
  closeSync,
  fstatSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { manualClock } from "../../base/clock.ts";
import type { Digest } from "../../base/digest.ts";
import { rngFrom } from "../../base/rng.ts";
import { openBook } from "../book.ts";
import { walkHeaders } from "./pack-headers.ts";
import { BLOCK_BYTES, PackReader } from "./pack-reader.ts";

test("a pack of several blocks is scanned whole, in order, across every block boundary", async () => {
  const root = mkdtempSync(join(tmpdir(), "rollbook-pack-"));
  try {
    const rng = rngFrom(5);
    const book = await openBook(root, { clock: manualClock(1) });
    // About 20 MB, mostly in pieces of up to 200 KB: entries straddle block boundaries, and the large ones exceed a
    // block.
    const put: Digest[] = Array.from({ length: 110 }, (_, i) =>
      book.put("test.blob", Buffer.alloc(rng.below(i % 20 === 0 ? 4_000_000 : 200_000), `${i} `)),
    );
    await book.close();
    const reader = await openBook(root, { clock: manualClock(2), mode: "read" });
    const seen: Digest[] = [];
    for await (const item of reader.scan()) if (item.type === "blob") seen.push(item.digest);
    await reader.close();
    expect(seen).toEqual(put);
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
});

test("of a pack of several blocks, damage takes the entries it touches and no other", async () => {
  const root = mkdtempSync(join(tmpdir(), "rollbook-pack-"));
  try {
    const rng = rngFrom(6);
    const book = await openBook(root, { clock: manualClock(1) });
    for (let i = 0; i < 160; i++) book.put("test.blob", Buffer.alloc(rng.below(60_000), `${i} `));
    await book.close();
    const path = join(root, "packs", readdirSync(join(root, "packs"))[0]!);
    const whole = readFileSync(path);
    const entries = entriesOf(path);
    const places = [
      ...Array.from({ length: 30 }, () => rng.below(whole.length - 100)),
      ...Array.from({ length: 30 }, () => BLOCK_BYTES * (1 + rng.below(8)) - 100 + rng.below(200)),
      ...entries.map(({ offset }) => offset + rng.below(60)).filter((_, i) => i % 5 === 0),
    ];
    for (const at of places) {
      const length = 1 + rng.below(99);
      const bytes = Buffer.from(whole);
      for (let i = at; i < at + length; i++) bytes[i]! ^= 1 + rng.below(255);
      writeFileSync(path, bytes);
      const reader = await PackReader.open(path);
      const found: number[] = [];
      for (let step = reader.next(); step !== undefined; step = reader.next())
        if (step === "more") await reader.more();
        else if (step.type === "entry") found.push(step.offset);
      await reader.close();
      const untouched = entries.filter(({ offset, bytes }) => offset + bytes <= at || offset >= at + length);
      expect(found).toEqual(untouched.map(({ offset }) => offset));
    }
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
});

function entriesOf(path: string): { offset: number; bytes: number }[] {
  const fd = openSync(path, "r");
  const entries: { offset: number; bytes: number }[] = [];
  walkHeaders(fd, { from: 0, size: fstatSync(fd).size }, (entry) => entries.push(entry));
  closeSync(fd);
  return entries;
}
