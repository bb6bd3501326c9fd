/** Searches the bytes of a book for a text. Reads every file, indexes included. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

export function filesHolding(book: string, text: string): string[] {
  return readdirSync(book, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((path) => readFileSync(path).includes(text));
}
