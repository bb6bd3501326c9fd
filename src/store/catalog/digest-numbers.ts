/** Numbers for digests: the one place where a catalog turns a digest into the number that its tables hold, and back.
 *  A digest is 32 random bytes. A number takes 3 or 4 and follows the order in which digests came, so that new rows go to the
 *  end of a table and not to a random page of it. In: a database. Out: numbers, and parts of queries. A number means
 *  nothing outside its file, and may go to another digest once no row holds it. */
import type { Digest } from "../../base/index.ts";
import type { Sqlite } from "../disk/index.ts";

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

/** The numbers of these digests, new ones in their order for those that have none. For one transaction: another process may
 *  replace the rows after it. One statement finds all, and one adds the new. */
export function numberDigests(db: Sqlite, digests: readonly Digest[]): (digest: Digest) => number {
  const wanted = [...new Set(digests)];
  const numbers = new Map<Digest, number>();
  const find = db.prepare("SELECT key, number FROM json_each(?) CROSS JOIN digests ON digest = unhex(value)");
  for (const { key, number } of find.all<{ key: number; number: number }>(boundDigests(wanted)))
    numbers.set(wanted[key]!, number);
  const added = wanted.filter((digest) => !numbers.has(digest));
  const last = db.prepare("SELECT coalesce(max(number), 0) AS number FROM digests");
  const next = last.get<{ number: number }>()!.number + 1;
  db.prepare("INSERT INTO digests SELECT ? + key, unhex(value) FROM json_each(?)").run(
    next,
    boundDigests(added),
  );
  for (const [i, digest] of added.entries()) numbers.set(digest, next + i);
  return (digest) => numbers.get(digest)!;
}
