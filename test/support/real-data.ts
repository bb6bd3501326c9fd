/** The folder of the public data sets: $ROLLBOOK_DATA, or ../shared/data beside the checkout. The checkout does not
 *  hold them. */
import { existsSync } from "node:fs";
import { join, resolve } from "node:path";

export const DATA_ROOT = resolve(process.env.ROLLBOOK_DATA ?? "../shared/data");

/** The path of a data file. If the file is absent: undefined, and a warning that its checks are skipped. */
export function realData(name: string): string | undefined {
  const path = join(DATA_ROOT, name);
  if (existsSync(path)) return path;
  console.warn(`real data absent: ${path} (set ROLLBOOK_DATA). The checks that read it are skipped.`);
  return undefined;
}
