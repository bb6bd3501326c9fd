/** Importing decisions: rows per second and memory over growing files. Streaming means that memory does not follow. */

import { once } from "node:events";
import { createWriteStream } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { rngFrom } from "../../src/base/rng.ts";
import { readMappedCsv } from "../../src/convert/mapped-csv.ts";

const SIZES = [10_000, 100_000, 1_000_000];
const MAP = {
  columns: { action: "model", reward: "reward", propensity: "p", features: ["length", "language"] },
  actions: ["small", "large"],
};

export async function importSpeed(): Promise<Record<string, string | number>[]> {
  const folder = await mkdtemp(join(tmpdir(), "rollbook-import-"));
  const rows: Record<string, string | number>[] = [];
  for (const size of SIZES) {
    const file = join(folder, `${size}.csv`);
    await writeRows(file, size);
    rows.push(await measure(file, size));
  }
  await rm(folder, { recursive: true });
  return rows;
}

async function measure(file: string, size: number): Promise<Record<string, string | number>> {
  globalThis.gc?.();
  const before = process.memoryUsage().rss;
  let peak = before;
  let count = 0;
  const start = performance.now();
  for await (const { reward } of readMappedCsv(file, MAP)) {
    count += reward === undefined ? 0 : 1;
    if (count % 10_000 === 0) peak = Math.max(peak, process.memoryUsage().rss);
  }
  const seconds = (performance.now() - start) / 1000;
  if (count !== size) throw new RangeError(`${count} of ${size} rows were read`);
  return {
    rows: size,
    "rows/s": Math.round(size / seconds),
    "resident memory grew by, MiB": (peak - before) / 2 ** 20,
  };
}

async function writeRows(file: string, size: number): Promise<void> {
  const out = createWriteStream(file);
  const rng = rngFrom(size);
  out.write("model,reward,p,length,language\n");
  for (let i = 0; i < size; i++) {
    const large = rng.float() < 0.3;
    const text = `${large ? "large" : "small"},${rng.below(2)},${large ? 0.3 : 0.7},${rng.below(4000)},en\n`;
    if (!out.write(text)) await once(out, "drain");
  }
  out.end();
  await once(out, "finish");
}
