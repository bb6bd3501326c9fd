/** Writes a routing dataset and its sidecar: row by row, and there whole or not at all. Memory does not follow its length. */
import { closeSync, existsSync, fsyncSync, openSync, renameSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { RollbookError } from "../../base/index.ts";
import { MetaTally, type RoutingRow } from "../../convert/routing-jsonl.ts";
import { syncDirectory, unlinkIfThere, writeAtomically } from "../../store/files.ts";
import type { Io } from "../../cli/io.ts";
import { jsonLine, plural } from "../../view/format.ts";

const FLUSH_CHARS = 1 << 20;

export async function writeDataset(
  io: Io,
  rows: AsyncIterable<RoutingRow>,
  { out, filters, json }: { out: string; filters: Record<string, string>; json?: true },
): Promise<void> {
  const sidecar = `${out}.meta.json`;
  for (const path of [out, sidecar])
    if (existsSync(path))
      throw new RollbookError("exists", { path }, `${path} is there already. Name another file with --out.`);
  const tally = new MetaTally();
  await writeLines(out, rows, tally);
  const meta = tally.meta(filters);
  writeAtomically(sidecar, Buffer.from(`${JSON.stringify(meta, null, 2)}\n`), `${sidecar}.part`);
  if (meta.below_recommended)
    io.err(
      `warning: ${plural(meta.rows, "row")}, fewer than the about ${meta.recommended} it takes to train a router and judge it\n`,
    );
  const sources = Object.entries(meta.by_source).map(([source, count]) => `${count} ${source}`);
  io.out(
    json
      ? jsonLine({ out, ...meta })
      : `${plural(meta.rows, "row")} (${sources.join(", ") || "none"}), ${meta.labelled} labelled, ${meta.with_propensity} with propensity: ${out}\n`,
  );
}

async function writeLines(out: string, rows: AsyncIterable<RoutingRow>, tally: MetaTally): Promise<void> {
  const part = `${out}.part`;
  const fd = openSync(part, "w");
  try {
    let text = "";
    for await (const row of rows) {
      tally.add(row);
      text += `${JSON.stringify(row)}\n`;
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
