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
  for (const path of [out, sidecar]) requireNew(path);
  const tally = new MetaTally();
  const lines = async function* () {
    for await (const row of rows) {
      tally.add(row);
      yield toRoutingRow(row);
    }
  };
  await writeJsonLines(out, lines());
  const meta = tally.meta({ ...filters });
  writeAtomically(sidecar, Buffer.from(`${JSON.stringify(meta, null, 2)}\n`), `${sidecar}.part`);
  return meta;
}

function requireNew(path: string): void {
  if (existsSync(path))
    throw new RollbookError("exists", { path }, `${path} already exists. Name another file with --out.`);
}

/** A value a line. Returns how many. */
export async function writeJsonLines(
  out: string,
  values: AsyncIterable<object>,
  /** The refusal of an empty file; without it an empty file is written. */
  whenEmpty?: () => RollbookError,
): Promise<number> {
  requireNew(out);
  let count = 0;
  const part = `${out}.part`;
  const fd = openSync(part, "w");
  try {
    let text = "";
    for await (const value of values) {
      count++;
      text += `${JSON.stringify(value)}\n`;
      if (text.length < FLUSH_CHARS) continue;
      writeFileSync(fd, text);
      text = "";
    }
    if (count === 0 && whenEmpty !== undefined) throw whenEmpty();
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
  return count;
}
