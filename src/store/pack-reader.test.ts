import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { manualClock } from "../base/clock.ts";
import type { Digest } from "../base/digest.ts";
import { rngFrom } from "../base/rng.ts";
import { openBook } from "./book.ts";

test("a pack of several blocks is scanned whole, in order, across every block boundary", async () => {
  const root = mkdtempSync(join(tmpdir(), "rollbook-pack-"));
  try {
    const rng = rngFrom(5);
    const book = await openBook(root, { clock: manualClock(1) });
    // About 11 MB in pieces of up to 200 KB: entries straddle the 2 MiB blocks.
    const put: Digest[] = Array.from({ length: 110 }, (_, i) =>
      book.put("test.blob", Buffer.alloc(rng.below(200_000), `${i} `)),
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
