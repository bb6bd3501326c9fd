/** Caches embeddings in `embeddings.db` of a book, keyed by the digest of model and text.
 *  In: a book's folder. Out: vectors by text. No record of the book refers to the cache, and it may be removed at any
 *  time. */
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { openSqlite, type Sqlite, unlinkIfThere } from "../../store/index.ts";

const FILE = "embeddings.db";

class EmbeddingCache {
  readonly #db: Sqlite;

  constructor(folder: string) {
    this.#db = openSqlite(join(folder, FILE));
    this.#db.exec(
      "CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, vector BLOB NOT NULL) WITHOUT ROWID",
    );
  }

  get(model: string, texts: readonly string[]): Map<string, Float32Array> {
    const one = this.#db.prepare("SELECT vector FROM vectors WHERE key = ?");
    const found = new Map<string, Float32Array>();
    for (const text of texts) {
      const row = one.get<{ vector: Uint8Array }>(keyOf(model, text));
      // The bytes are copied because those of a row need not be aligned.
      if (row !== undefined) found.set(text, new Float32Array(Uint8Array.from(row.vector).buffer));
    }
    return found;
  }

  put(model: string, vectors: ReadonlyMap<string, Float32Array>): void {
    const add = this.#db.prepare("INSERT OR IGNORE INTO vectors (key, vector) VALUES (?, ?)");
    this.#db.transaction(() => {
      for (const [text, { buffer, byteOffset, byteLength }] of vectors)
        add.run(keyOf(model, text), new Uint8Array(buffer, byteOffset, byteLength));
    });
  }

  close(): void {
    this.#db.close();
  }
}

/** Undefined if there is no book folder for the cache. */
export function openEmbeddingCache(folder: string | undefined): EmbeddingCache | undefined {
  return folder === undefined || folder === "" || !existsSync(folder)
    ? undefined
    : new EmbeddingCache(folder);
}

/** A vector reveals much of its text, so erased text must not stay in a cache. */
export function removeEmbeddingCache(folder: string): void {
  for (const end of ["", "-wal", "-shm"]) unlinkIfThere(join(folder, FILE + end));
}

function keyOf(model: string, text: string): Uint8Array {
  return createHash("sha256").update(`rollbook.embedding.v1\0${model}\0`).update(text).digest();
}
