/** Opens a book for work: its bytes, its index, the clock, and the key that signs what is written.
 *  In: a directory. Out: an OpenBook, which every function of this folder takes. Never creates a book unless asked
 *  to. */
import { accessSync, constants, existsSync, statSync } from "node:fs";
import { join } from "node:path";
import { type Clock, RollbookError, systemClock } from "../../base/index.ts";
import type { Signer, SignHead } from "../../contract/index.ts";
import {
  type BlobStore,
  type Book,
  type Catalog,
  openCatalog,
  openBook as openStore,
} from "../../store/index.ts";
import { type BookIndex, catalogIndex, scanIndex } from "./book-index.ts";
import { loadSigner, ownKeyring } from "./keyring.ts";
import { requiredKeys } from "./trust.ts";
import { workingCopy } from "./working-copy.ts";

export const DEFAULT_BOOK = ".rollbook";

export interface OpenBook {
  /** Empty for a book that is not on disk. */
  readonly root: string;
  readonly store: BlobStore;
  readonly clock: Clock;
  /** Signs sealed records; without a signer, records are stored unsigned. */
  readonly signer: Signer | undefined;
  /** If set, judgements count only with a signature of one of these keys; all others are refused. */
  readonly required?: ReadonlySet<string> | undefined;
  /** Index of the current content of the book. */
  index(): Promise<BookIndex>;
  close(): Promise<void>;
}

export interface BookOnDisk extends OpenBook {
  readonly store: Book;
}

export interface OpenBookOptions {
  /** "read" never changes the book. */
  readonly mode?: "write" | "read";
  /** Creates the book if there is none. */
  readonly create?: boolean;
  readonly clock?: Clock;
  /** Called at the first signature (default: the user's own key, if there is one). */
  readonly signer?: () => Signer | undefined;
  /** Refuses judgements that none of these keys has signed (default: no check, unless the environment variable
   *  ROLLBOOK_REQUIRE_TRUSTED is set). */
  readonly required?: ReadonlySet<string> | undefined;
}

/** `book` is a directory, or s3://bucket/prefix. */
export async function openBook(book = DEFAULT_BOOK, options: OpenBookOptions = {}): Promise<BookOnDisk> {
  const root = await workingCopy(book);
  const { mode = "write", create = false, clock = systemClock, signer = ownSigner } = options;
  if (!create || mode === "read") requireBook(root);
  if (mode === "write" && isBook(root)) requireWritable(root);
  const required = options.required ?? requiredKeys(process.env, ownKeyring());
  const known = once(signer);
  const store = await openStore(root, { clock, mode, sign: () => headSigner(known()) });
  return new DiskBook(store, { clock, signer: known, required });
}

/** Presents any store as a book. Its index is built from the records, which takes as long as reading all of them. */
export function bookOver(
  store: BlobStore,
  { clock = systemClock, signer }: { clock?: Clock; signer?: Signer | undefined } = {},
): OpenBook {
  return { root: "", store, clock, signer, index: () => scanIndex(store), close: () => store.close() };
}

/** Opens a book, runs the work and closes the book, also after an error. */
export async function useBook<T>(
  root: string,
  options: OpenBookOptions,
  work: (book: BookOnDisk) => Promise<T>,
): Promise<T> {
  const book = await openBook(root, options);
  try {
    return await work(book);
  } finally {
    await book.close();
  }
}

export function isBook(root: string): boolean {
  return existsSync(join(root, "book.json"));
}

export function requireBook(root: string): void {
  if (isBook(root)) return;
  const within = [".rollbook", "book"].map((name) => join(root, name)).find(isBook);
  const [what, next] =
    within !== undefined
      ? ["is not a book, but holds one", `Name it with --book ${within}`]
      : statSync(root, { throwIfNoEntry: false })?.isFile()
        ? ["is a file, and a book is a directory", "Name another with --book"]
        : [
            existsSync(root) ? "is not a book" : "does not exist, so there is no book",
            `Create one with \`rollbook init${root === DEFAULT_BOOK ? "" : ` --book ${root}`}\`, or name another with --book`,
          ];
  throw new RollbookError("no-book", { root }, `${root} ${what}. ${next}.`);
}

/** Checks all places where files and locks are written, so that the user sees this error instead of one from SQLite or
 *  a lock. */
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

/** Function that signs heads; undefined without a key. */
export function headSigner(signer: Signer | undefined): SignHead | undefined {
  return signer === undefined ? undefined : (head) => signer.signHead(head);
}

function once<T>(find: () => T): () => T {
  let found: { readonly value: T } | undefined;
  return () => {
    found ??= { value: find() };
    return found.value;
  };
}

function ownSigner(): Signer | undefined {
  return loadSigner(ownKeyring());
}

/** The catalog is opened on first use. In a read-only directory the index is built by a scan instead. */
class DiskBook implements BookOnDisk {
  readonly store: Book;
  readonly clock: Clock;
  readonly required: ReadonlySet<string> | undefined;
  readonly #signer: () => Signer | undefined;
  #catalog: Catalog | undefined;

  constructor(
    store: Book,
    {
      clock,
      signer,
      required,
    }: { clock: Clock; signer: () => Signer | undefined; required: ReadonlySet<string> | undefined },
  ) {
    this.store = store;
    this.clock = clock;
    this.required = required;
    this.#signer = signer;
  }

  get signer(): Signer | undefined {
    return this.#signer();
  }

  get root(): string {
    return this.store.root;
  }

  async index(): Promise<BookIndex> {
    await this.store.update();
    if (!mayWrite(this.root)) return scanIndex(this.store);
    if (this.#catalog === undefined) {
      const catalog = openCatalog(this.root);
      this.#catalog = catalog;
      this.store.lookUpBy((digest) => catalog.entryOf(digest));
    }
    await this.#catalog.sync();
    return catalogIndex(this.#catalog);
  }

  async close(): Promise<void> {
    try {
      this.#catalog?.close();
    } finally {
      await this.store.close();
    }
  }
}

/** A catalog lies in the book. In a read-only directory there is no catalog to trust or to repair. */
export function mayWrite(root: string): boolean {
  try {
    accessSync(root, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}
