/** Writes a routing dataset and its sidecar row by row; the file is written completely or not at all. Memory use does
 *  not depend on its length. */
import type { RollbookError } from "../../base/index.ts";
import { MetaTally, type RoutingMeta, requireFree, toRoutingRow, writeNewFile } from "../../convert/index.ts";
import type { LoggedRow } from "../../learn/index.ts";

export async function writeDataset(
  rows: AsyncIterable<LoggedRow>,
  { out, filters }: { out: string; filters: Readonly<Record<string, string>> },
): Promise<{ readonly meta: RoutingMeta; readonly isFull: boolean }> {
  const sidecar = `${out}.meta.json`;
  for (const path of [out, sidecar]) requireFree(path);
  const tally = new MetaTally();
  const lines = async function* () {
    for await (const row of rows) {
      tally.add(row);
      yield toRoutingRow(row);
    }
  };
  await writeJsonLines(out, lines());
  const meta = tally.meta({ ...filters });
  await writeNewFile(sidecar, (file) => file.append(Buffer.from(`${JSON.stringify(meta, null, 2)}\n`)));
  return { meta, isFull: tally.isFull };
}

/** Writes one value per line. Returns the number of lines. */
export async function writeJsonLines(
  out: string,
  values: AsyncIterable<object>,
  /** Makes the error for an empty file; if absent, an empty file is written. */
  whenEmpty?: () => RollbookError,
): Promise<number> {
  let count = 0;
  await writeNewFile(out, async (file) => {
    for await (const value of values) {
      count++;
      file.append(Buffer.from(`${JSON.stringify(value)}\n`));
    }
    if (count === 0 && whenEmpty !== undefined) throw whenEmpty();
  });
  return count;
}
