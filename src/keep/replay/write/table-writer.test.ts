import { expect, test } from "vitest";
import { columnWriters, type Layout } from "./table-writer.ts";

/** The reward column of 20 000 states, 160 kB. */
async function rewardLayout(layout: Layout) {
  const store = new Map<string, Uint8Array>();
  const writers = columnWriters(store, "q_h", { layout, maxCandidates: 2, columns: ["reward"] });
  await writers.append({ reward: new Float64Array(20_000) });
  const [{ metadata }] = (await writers.close()) as [Awaited<ReturnType<typeof writers.close>>[number]];
  return [metadata.chunkRows * 8, metadata.shardRows / metadata.chunkRows];
}

test("a compressed column has chunks of 64 KiB, 16 to a shard; each number has its default", async () => {
  expect(await rewardLayout({ codec: "zstd" })).toEqual([65_536, 16]);
  expect(await rewardLayout({ codec: "gzip" })).toEqual([65_536, 16]);
  expect(await rewardLayout({ codec: "zstd", chunkBytes: 32_768 })).toEqual([32_768, 16]);
  expect(await rewardLayout({ codec: "zstd", shardChunks: 4 })).toEqual([65_536, 4]);
  expect(await rewardLayout({ codec: "zstd", chunkBytes: 32_768, shardChunks: 0 })).toEqual([32_768, 0]);
  expect(await rewardLayout({ codec: "none" })).toEqual([160_000, 0]);
});
