/** Writes a routing dataset and its sidecar: row by row, and there whole or not at all. Memory does not follow its length. */
import { closeSync, existsSync, fsyncSync, openSync, renameSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { RollbookError } from "../../base/index.ts";
import { MetaTally, type RoutingMeta, toRoutingRow } from "../../convert/index.ts";
import type { LoggedRow } from "../../learn/index.ts";
import { syncDirectory, unlinkIfThere, writeAtomically } from "../../store/index.ts";

const FLUSH_CHARS = 1 << 20;

export async function writeDataset(
  rows: AsyncIterable<LoggedRow>,
  { out, filters }: { out: string; filters: Readonly<Record<string, string>> },
): Promise<RoutingMeta> {
  const sidecar = `${out}.meta.json`;
  for (const path of [out, sidecar])
    if (existsSync(path))
      throw new RollbookError("exists", { path }, `${path} is there already. Name another file with --out.`);
  const tally = new MetaTally();
  await writeLines(out, rows, tally);
  const meta = tally.meta({ ...filters });
  writeAtomically(sidecar, Buffer.from(`${JSON.stringify(meta, null, 2)}\n`), `${sidecar}.part`);
  return meta;
}

async function writeLines(out: string, rows: AsyncIterable<LoggedRow>, tally: MetaTally): Promise<void> {
  const part = `${out}.part`;
  const fd = openSync(part, "w");
  try {
    let text = "";
    for await (const row of rows) {
      tally.add(row);
      text += `${JSON.stringify(toRoutingRow(row))}\n`;
      if (text.length < FLUSH_CHARS) continue;
      writeFileSync(fd, text);
      text = "";
    }
    writeFileSync(fd, text);
    fsyncSync(fd);
  } catch (error) {
    unlinkIfThere(part);
    throw error;
  } finally {
    closeSync(fd);
  }
  renameSync(part, out);
  syncDirectory(dirname(out));
}
