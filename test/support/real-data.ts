/** Where the public data sets lie: $ROLLBOOK_DATA, or ../shared/data beside the checkout. They are not part of it. */
import { existsSync } from "node:fs";
import { join, resolve } from "node:path";

export const DATA_ROOT = resolve(process.env.ROLLBOOK_DATA ?? "../shared/data");

/** The path of a data file, or undefined with one line that says what is not checked. */
export function realData(name: string): string | undefined {
  const path = join(DATA_ROOT, name);
  if (existsSync(path)) return path;
  console.warn(`real data absent: ${path} (set ROLLBOOK_DATA). The checks that read it are skipped.`);
  return undefined;
}
