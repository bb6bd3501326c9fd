/** The signed state of a book at one moment: a link in a chain of heads. A reader that keeps the digest of a head can
 *  later detect a missing, truncated or rewritten pack, or a book restored to an earlier state. A head names the packs
 *  that are new or have grown since the previous heads; their hashes cover every entry. */
import { verify } from "node:crypto";
import * as z from "zod";
import { canonicalize } from "../../base/index.ts";
import { count, defineRecord, digest, type RecordOf, refuse, type Sealed, timeMs } from "../codec/index.ts";
import { keyOf, publicKey, signature } from "./keys.ts";

/** A hash that names no blob of the book. It is not written as a digest, which would count as a reference. */
const hash = z.string().regex(/^[0-9a-f]{64}$/, "is not a hash of 64 hex digits");

/** Number of entries at the start of a pack, and the hash over their digests in order. */
const packState = z.strictObject({
  pack: z.string().regex(/^\d{8}T\d{9}Z-[0-9a-f]{12}-\d{6}$/, "is not the name of a pack"),
  entries: z.number().int().min(1),
  chain: hash,
});
export type PackState = z.output<typeof packState>;

const MOST_PACKS = 1_000_000;

/** Kind of the list of folded heads: their digests, 32 bytes each, sorted. */
export const FOLDED_HEADS_KIND = "rollbook.folded-heads.v1";

export const BookHead = defineRecord({
  kind: "rollbook.head.v1",
  summary: "The content of a book at one moment: its packs by hash, chained to the heads before and signed.",
  shape: {
    /** Digest in book.json, as hex. */
    book: hash,
    /** One more than the highest sequence of the previous heads. */
    sequence: count,
    previous: z.array(digest).max(16),
    packs: z.array(packState).max(MOST_PACKS),
    /** State of packs that gc or an erasure replaced, before the replacement. Their remaining entries are in other
     *  packs. */
    replaced: z.optional(z.array(packState).max(MOST_PACKS)),
    /** Heads of the same signer that gc removed. Their packs are among those of this head or of later heads. */
    folded: z.optional(z.strictObject({ heads: z.number().int().min(1), list: digest })),
    atMs: timeMs,
    signer: publicKey,
    signature,
  },
  references: ({ previous, folded }) => [
    ...previous.map((head, i) => ({ digest: head, kind: "rollbook.head.v1", field: `previous[${i}]` })),
    ...(folded === undefined ? [] : [{ digest: folded.list, kind: FOLDED_HEADS_KIND, field: "folded.list" }]),
  ],
  check({ packs, replaced = [] }) {
    for (const [field, states] of [
      ["packs", packs],
      ["replaced", replaced],
    ] as const)
      for (let i = 1; i < states.length; i++)
        if (states[i - 1]!.pack >= states[i]!.pack)
          throw refuse("bad-record", { field }, `${field} are not sorted by name and unique.`);
  },
});
export type BookHead = RecordOf<typeof BookHead>;
export type UnsignedHead = Omit<BookHead, "schema" | "signer" | "signature">;
/** Signs on this thread or on another. */
export type SignHead = (head: UnsignedHead) => SealedHead | Promise<SealedHead>;
type SealedHead = Omit<Sealed<BookHead>, "record">;

/** Throws a refusal unless the signature is valid. Does not check trust in the signer. */
export function checkHead({ signature: signed, schema: _, ...head }: BookHead): void {
  if (verify(null, headMessage(head), keyOf(head.signer), Buffer.from(signed, "base64url"))) return;
  throw refuse(
    "bad-signature",
    { signer: head.signer },
    `the signature by ${head.signer} does not fit head ${head.sequence}.`,
  );
}

export function headMessage(head: Omit<BookHead, "schema" | "signature">): Buffer {
  return Buffer.from(`${BookHead.kind}\0${canonicalize(head)}`);
}
