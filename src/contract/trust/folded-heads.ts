/** The list of heads that a head folds: sorted digests of 32 bytes each, so that a lookup does not read the whole
 *  list. */
import type { Digest } from "../../base/index.ts";
import { refuse } from "../codec/index.ts";

const DIGEST_BYTES = 32;

export function foldedList(heads: Iterable<Digest>): Buffer {
  return Buffer.concat([...new Set(heads)].sort().map((head) => bytesOf(head)));
}

export function headsOf(list: Uint8Array): Digest[] {
  const bytes = Buffer.from(list);
  return Array.from(
    { length: bytes.length / DIGEST_BYTES },
    (_, i) => `sha256:${bytes.toString("hex", i * DIGEST_BYTES, (i + 1) * DIGEST_BYTES)}` as Digest,
  );
}

/** Throws a refusal unless the list holds exactly `heads` digests, sorted and unique. */
export function checkFoldedList(list: Uint8Array, heads: number): void {
  let inOrder = list.length === heads * DIGEST_BYTES;
  for (let at = DIGEST_BYTES; inOrder && at < list.length; at += DIGEST_BYTES)
    inOrder = Buffer.compare(list.subarray(at - DIGEST_BYTES, at), list.subarray(at, at + DIGEST_BYTES)) < 0;
  if (!inOrder)
    throw refuse("bad-record", { heads }, `the list of folded heads is not ${heads} digests in order.`);
}

/** Binary search: the list must be sorted. */
export function isFolded(head: Digest, list: Uint8Array): boolean {
  const wanted = bytesOf(head);
  let [low, high] = [0, list.length / DIGEST_BYTES];
  while (low < high) {
    const middle = (low + high) >> 1;
    const order = wanted.compare(list, middle * DIGEST_BYTES, (middle + 1) * DIGEST_BYTES);
    if (order === 0) return true;
    if (order > 0) low = middle + 1;
    else high = middle;
  }
  return false;
}

function bytesOf(head: Digest): Buffer {
  return Buffer.from(head.slice("sha256:".length), "hex");
}
