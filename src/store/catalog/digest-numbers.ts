/** Numbers for digests: the only place where a catalog turns a digest into the number in its tables, and back. A digest
 *  is 32 random bytes. A number takes 3 or 4 bytes and follows the order of arrival. New rows therefore go to the end
 *  of a table and not to a random page. In: a database. Out: numbers, and parts of queries. A number has no meaning
 *  outside its file, and is reused when no row holds it. */
import type { Digest } from "../../base/index.ts";
import type { Sqlite } from "../disk/index.ts";

export const DIGESTS_TABLE =
  "CREATE TABLE digests (number INTEGER PRIMARY KEY, digest BLOB NOT NULL UNIQUE);";

/** Part of a query: the number of the digest that an expression gives; by default the bound digest. */
export const numberOf = (digest = "?") => `(SELECT number FROM digests WHERE digest = ${digest})`;

/** Part of a query: the numbers of digests that are bound as one text. One query for a thousand costs as much as fifty
 *  for one. */
export const numbersOf = () =>
  "(SELECT number FROM digests WHERE digest IN (SELECT unhex(value) FROM json_each(?)))";

/** Argument for `numbersOf`. */
export const boundDigests = (digests: readonly Digest[]) =>
  JSON.stringify(digests.map((digest) => digest.slice("sha256:".length)));

/** Part of a query: joins `digest` to rows that are found first. `number` is the column with the digest's number. */
export const withDigest = (number: string) => `CROSS JOIN digests ON digests.number = ${number}`;

/** Removes digests that no row needs. Call inside a transaction. */
export function forgetUnusedDigests(db: Sqlite): void {
  db.exec(
    "DELETE FROM digests WHERE number NOT IN (SELECT number FROM blobs) AND number NOT IN (SELECT target FROM refs)",
  );
}

/** Numbers of these digests; unknown digests get new numbers in their order. Valid for one transaction: another process
 *  may replace the rows after it. One statement finds all numbers, and one adds the new ones. */
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
