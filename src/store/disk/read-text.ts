/** Reads a file that a user has named; the error names the expected content. */
import { readFileSync } from "node:fs";
import { fileReason, RollbookError } from "../../base/index.ts";

export function readText(
  path: string,
  what: string,
  { code = "no-file", remedy = "Correct the path" }: { code?: string; remedy?: string } = {},
): string {
  try {
    return readFileSync(path, "utf8");
  } catch (cause) {
    const message = `${path} cannot be read as ${what}: ${fileReason(cause)}. ${remedy}.`;
    throw new RollbookError(code, { path }, message, { cause });
  }
}
