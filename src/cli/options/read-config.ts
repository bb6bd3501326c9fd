/** The text of a configuration file that a flag names. */
import { readFileSync } from "node:fs";
import { RollbookError } from "../../base/index.ts";

export function readConfig(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (cause) {
    throw new RollbookError("no-config", { path }, `${path} cannot be read. Correct its name.`, { cause });
  }
}
