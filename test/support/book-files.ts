/** Looks for text in the bytes of a book: every file, so that nothing hides in an index. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

export function filesHolding(book: string, text: string): string[] {
  return readdirSync(book, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((path) => readFileSync(path).includes(text));
}
