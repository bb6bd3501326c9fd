/** Evidence in an envelope. Each kind defines its check; presence alone proves nothing. */
import * as z from "zod";
import { type Digest, digestJson } from "../../base/index.ts";
import { digest, text } from "../codec/index.ts";

export const proof = z.discriminatedUnion("kind", [
  /** Digest of the calls of the rollout, in order. Check: recompute it from the content. */
  z.strictObject({ kind: z.literal("call-log"), digest }),
  /** The worker committed to nonce and content before anyone could see the content. Check: recompute it from both. */
  z.strictObject({ kind: z.literal("commitment"), digest, nonce: text(256) }),
  /** A record of the execution (a log, a receipt, a bundle of verdicts), as a blob. Check: the blob is present and
   *  hashed. */
  z.strictObject({ kind: z.literal("execution"), digest, reference: text(1024) }),
  z.strictObject({ kind: z.literal("validator-bundle"), digest, reference: text(1024) }),
]);
export type Proof = z.output<typeof proof>;

/** A commitment that is made before the content is shown. */
export function commitTo(content: Digest, nonce: string): Digest {
  return digestJson("rollbook.commitment.v1", { content, nonce });
}
