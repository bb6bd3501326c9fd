/** Opens the book of a command: found by its flags, and closed also after an error. */
import {
  type BookOnDisk,
  DEFAULT_BOOK,
  keyringOf,
  loadSigner,
  requiredKeys,
  trustedSet,
  useBook,
} from "../book/open/index.ts";
import type { Io } from "./io.ts";

/** Flags of every command: --json, and --book if it works on a book. */
export interface BookFlags {
  readonly book?: string;
  readonly json?: true;
  readonly requireTrusted?: true;
}

export function bookRoot(io: Io, flags: BookFlags): string {
  return flags.book ?? (io.env.ROLLBOOK_BOOK || DEFAULT_BOOK);
}

/** Never creates a book: `init` does. */
export function withBook<T>(
  io: Io,
  flags: BookFlags & { mode?: "read" | "write"; sign?: boolean },
  work: (book: BookOnDisk) => Promise<T>,
): Promise<T> {
  const { mode = "read", sign = true } = flags;
  const signer = () => (sign ? loadSigner(keyringOf(io)) : undefined);
  const keyring = keyringOf(io);
  const required = flags.requireTrusted ? trustedSet(keyring) : requiredKeys(io.env, keyring);
  return useBook(bookRoot(io, flags), { mode, clock: io.clock, signer, required }, work);
}
