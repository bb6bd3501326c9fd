/** Domain-separated SHA-256: the same bytes under two tags have two digests, so a record of one kind never matches
 *  another kind. digest = SHA-256(tag, 0x00, bytes), written `sha256:<hex>`. */
import { createHash, hash } from "node:crypto";
import { canonicalize } from "./canonical-json.ts";
import { RollbookError } from "./errors.ts";

export type Digest = string & { readonly __brand: "Digest" };

export const DIGEST_PATTERN = /^sha256:[0-9a-f]{64}$/;

export function isDigest(text: unknown): text is Digest {
  return typeof text === "string" && DIGEST_PATTERN.test(text);
}

export function digestBytes(tag: string, bytes: Uint8Array): Digest {
  if (bytes.length <= JOINED_BYTES && tag.length <= JOINED_TAG) return digestJoined(tag, bytes);
  return `sha256:${createHash("sha256").update(`${tag}\0`).update(bytes).digest("hex")}` as Digest;
}

/** Up to this size, copying the bytes behind the tag and hashing once is faster than updating a hash twice. */
const JOINED_BYTES = 64 * 1024;
const JOINED_TAG = 128;
/** A UTF-16 unit takes at most three bytes in UTF-8. */
const joined = Buffer.allocUnsafeSlow(3 * JOINED_TAG + 1 + JOINED_BYTES);

function digestJoined(tag: string, bytes: Uint8Array): Digest {
  const at = joined.write(`${tag}\0`);
  joined.set(bytes, at);
  return digestTagged(joined.subarray(0, at + bytes.length));
}

/** Digest of the canonical JSON of `value`. */
export function digestJson(tag: string, value: unknown): Digest {
  return `sha256:${hash("sha256", `${tag}\0${canonicalize(value)}`, "hex")}` as Digest;
}

/** For callers that already hold tag, zero byte and bytes in one buffer, as pack files do. */
export function digestTagged(tagged: Uint8Array): Digest {
  return `sha256:${hash("sha256", tagged, "hex")}` as Digest;
}

export function digestToBytes(digest: Digest): Uint8Array {
  return Buffer.from(digest.slice(7), "hex");
}

/** Writes the 64 hexadecimal digits from `from` on as 32 bytes. A loop in JavaScript, because a call into native code
 *  costs more. */
export function writeHex(
  text: string,
  { from, target, at }: { from: number; target: Uint8Array; at: number },
): void {
  for (let i = 0; i < 32; i++)
    target[at + i] =
      (hexValue(text.charCodeAt(from + 2 * i)) << 4) | hexValue(text.charCodeAt(from + 2 * i + 1));
}

/** Value of a lower-case hexadecimal digit. Has no branch, because the branch would be unpredictable. */
function hexValue(code: number): number {
  return (code & 15) + 9 * (code >> 6);
}

export function digestFromBytes(bytes: Uint8Array): Digest {
  if (bytes.byteLength !== 32) {
    throw new RollbookError(
      "bad-digest",
      { bytes: bytes.byteLength },
      `a SHA-256 digest has 32 bytes, not ${bytes.byteLength}. The file it was read from is cut short.`,
    );
  }
  return `sha256:${Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("hex")}` as Digest;
}
