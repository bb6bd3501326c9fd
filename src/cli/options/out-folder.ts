/** Refuses an output file whose folder is missing, before the work begins: its result would be lost at the end. */
import { existsSync } from "node:fs";
import { dirname } from "node:path";
import type { Command } from "commander";
import { RollbookError } from "../../base/index.ts";

/** Options that name an output file. A missing output folder (`--out <dir>`) is created. */
const OUTPUTS = ["--out <file>", "--report <file>"];

export function requireOutFolder(command: Command): void {
  for (const option of command.options) {
    const path = command.getOptionValue(option.attributeName()) as unknown;
    if (!OUTPUTS.includes(option.flags) || typeof path !== "string" || existsSync(dirname(path))) continue;
    const folder = dirname(path);
    throw new RollbookError(
      "no-file",
      { path: folder },
      `the folder ${folder} does not exist. Create it, or name another file with ${option.long}.`,
    );
  }
}
