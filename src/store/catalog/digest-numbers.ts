/** Numbers for digests: the one place where a catalog turns a digest into the number that its tables hold, and back.
 *  A digest is 32 random bytes. A number takes 3 or 4 and follows the order in which digests came, so that new rows go to the
 *  end of a table and not to a random page of it. In: a database. Out: numbers, and parts of queries. A number means
 *  nothing outside its file, and may go to another digest once no row holds it. */
import { type Digest, digestToBytes } from "../../base/index.ts";
import type { Sqlite, Statement } from "../disk/index.ts";

export const DIGESTS_TABLE =
  "CREATE TABLE digests (number INTEGER PRIMARY KEY, digest BLOB NOT NULL UNIQUE);";

/** In a query: the number of the digest that an expression gives; by default of the one that is bound. */
export const numberOf = (digest = "?") => `(SELECT number FROM digests WHERE digest = ${digest})`;

/** In a query: the numbers of digests that are bound as one text. A query for a thousand costs as much as fifty for one. */
export const numbersOf = () =>
  "(SELECT number FROM digests WHERE digest IN (SELECT unhex(value) FROM json_each(?)))";

/** What `numbersOf` takes. */
export const boundDigests = (digests: readonly Digest[]) =>
  JSON.stringify(digests.map((digest) => digest.slice("sha256:".length)));

/** In a query: joins `digest` to rows that are found first. `number` is the column that stands for it. */
export const withDigest = (number: string) => `CROSS JOIN digests ON digests.number = ${number}`;

/** Removes digests that no row needs. Call inside a transaction. */
export function forgetUnusedDigests(db: Sqlite): void {
  db.exec(
    "DELETE FROM digests WHERE number NOT IN (SELECT number FROM blobs) AND number NOT IN (SELECT target FROM refs)",
  );
}

/** Finds and gives numbers. For one transaction: another process may replace the rows after it. */
export class DigestNumbers {
  readonly #find: Statement;
  readonly #findAll: Statement;
  readonly #insert: Statement;
  readonly #known = new Map<Digest, number>();
  #next: number;

  constructor(db: Sqlite) {
    this.#find = db.prepare(`SELECT ${numberOf()} AS number`);
    this.#findAll = db.prepare(
      "SELECT key, number FROM json_each(?) CROSS JOIN digests ON digest = unhex(value)",
    );
    this.#insert = db.prepare("INSERT OR IGNORE INTO digests VALUES (?, ?)");
    const last = db.prepare("SELECT coalesce(max(number), 0) AS number FROM digests");
    this.#next = last.get<{ number: number }>()!.number + 1;
  }

  /** The number of a digest, a new one if it has none. */
  of(digest: Digest): number {
    const known = this.#known.get(digest);
    if (known !== undefined) return known;
    const bytes = digestToBytes(digest);
    // Most are new: one statement is enough for them.
    const isNew = this.#insert.run(this.#next, bytes).changes > 0;
    const number = isNew ? this.#next++ : this.#find.get<{ number: number }>(bytes)!.number;
    this.#known.set(digest, number);
    return number;
  }

  /** The same for all that a record refers to. A batch names thousands that have numbers: one statement finds them. */
  ofAll(digests: readonly Digest[]): number[] {
    if (digests.length > FEW) {
      const unknown = digests.filter((digest) => !this.#known.has(digest));
      for (const { key, number } of this.#findAll.all<{ key: number; number: number }>(boundDigests(unknown)))
        this.#known.set(unknown[key]!, number);
    }
    return digests.map((digest) => this.of(digest));
  }
}

const FEW = 16;
