/** Finds and opens the book a command works on. */
import { accessSync, constants, existsSync } from "node:fs";
import { join } from "node:path";
import { RollbookError } from "../base/index.ts";
import { type Book, openBook } from "../store/index.ts";
import { type BookIndex, withIndex } from "./find/book-index.ts";
import type { Io } from "../cli/io.ts";

export interface BookFlags {
  readonly book?: string;
}

export const DEFAULT_BOOK = ".rollbook";

export function bookRoot(io: Io, flags: BookFlags): string {
  return flags.book ?? (io.env.ROLLBOOK_BOOK || DEFAULT_BOOK);
}

export function isBook(root: string): boolean {
  return existsSync(join(root, "book.json"));
}

export function requireBook(root: string): void {
  if (isBook(root)) return;
  throw new RollbookError(
    "no-book",
    { root },
    `${root} is not a book. Create one with \`rollbook init --book ${root}\`, or name another with --book.`,
  );
}

/** Where a command writes, files and locks alike: told before SQLite or a lock speaks of it in its own words. */
export function requireWritable(root: string): void {
  for (const path of [root, ...["packs", "large", "tmp", "locks"].map((name) => join(root, name))]) {
    try {
      if (existsSync(path)) accessSync(path, constants.W_OK);
    } catch (cause) {
      const why =
        (cause as NodeJS.ErrnoException).code === "EROFS"
          ? "its file system is mounted read-only"
          : "you may not write there";
      throw new RollbookError(
        "read-only",
        { root, path },
        `the book is read-only: ${path}, ${why}. Make it writable for you (\`chmod -R u+w ${root}\`, or as its owner), or work on a copy with --book.`,
        { cause },
      );
    }
  }
}

/** Opens the book, runs `work` and closes it, whatever happens. Never creates one: that is `init`. */
export async function withBook<T>(
  io: Io,
  flags: BookFlags & { mode?: "read" | "write" },
  work: (book: Book) => Promise<T>,
): Promise<T> {
  const root = bookRoot(io, flags);
  requireBook(root);
  if (flags.mode === "write") requireWritable(root);
  const book = await openBook(root, { clock: io.clock, mode: flags.mode ?? "read" });
  try {
    return await work(book);
  } finally {
    await book.close();
  }
}

/** The book and what is in it. */
export async function withIndexedBook<T>(
  io: Io,
  flags: BookFlags & { mode?: "read" | "write" },
  work: (book: Book, index: BookIndex) => Promise<T>,
): Promise<T> {
  return withBook(io, flags, (book) => withIndex(book, (index) => work(book, index)));
}
