/** The digest of a body as it crossed the wire. In: its bytes, in chunks. Out: the digest under which a call names
 *  the body. */
import { createHash } from "node:crypto";
import { type Digest, digestTagged } from "../../../base/index.ts";
import { BODY_KIND } from "../../../contract/index.ts";

/** Up to this size, hashing a joined copy takes less time than an incremental hash. Above it, the copy costs too
 *  much memory. */
const JOINED_BYTES = 64 * 1024;
const BODY_PREFIX = Buffer.from(`${BODY_KIND}\0`);

export function digestBody(...chunks: readonly Uint8Array[]): Digest {
  let bytes = 0;
  for (const { length } of chunks) bytes += length;
  if (bytes <= JOINED_BYTES) return digestTagged(Buffer.concat([BODY_PREFIX, ...chunks]));
  const hash = createHash("sha256").update(BODY_PREFIX);
  for (const chunk of chunks) hash.update(chunk);
  return `sha256:${hash.digest("hex")}` as Digest;
}
