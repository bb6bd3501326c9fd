/** A file that a configuration names; the error says what it was taken for. */
import { readFileSync } from "node:fs";
import { fileReason, RollbookError } from "../../base/index.ts";

export function readText(path: string, what: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (cause) {
    throw new RollbookError(
      "no-file",
      { path },
      `${path} cannot be read as ${what}: ${fileReason(cause)}. Correct the path.`,
      { cause },
    );
  }
}
