/** Domain-separated SHA-256: the same bytes under two tags have two digests, so a record of one kind
 *  can never pass for another. digest = SHA-256(tag, 0x00, bytes), written `sha256:<hex>`. */
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

/** Up to here a copy behind the tag, hashed in one go, takes less than a hash that is fed twice. */
const JOINED_BYTES = 64 * 1024;
const JOINED_TAG = 128;
/** Three bytes are the most that a UTF-16 unit takes in UTF-8. */
const joined = Buffer.allocUnsafeSlow(3 * JOINED_TAG + 1 + JOINED_BYTES);

function digestJoined(tag: string, bytes: Uint8Array): Digest {
  const at = joined.write(`${tag}\0`);
  joined.set(bytes, at);
  return digestTagged(joined.subarray(0, at + bytes.length));
}

/** The digest of the canonical JSON of `value`. */
export function digestJson(tag: string, value: unknown): Digest {
  return `sha256:${hash("sha256", `${tag}\0${canonicalize(value)}`, "hex")}` as Digest;
}

/** For callers that hold tag, zero and bytes in one piece already, as pack files do. */
export function digestTagged(tagged: Uint8Array): Digest {
  return `sha256:${hash("sha256", tagged, "hex")}` as Digest;
}

export function digestToBytes(digest: Digest): Uint8Array {
  return Buffer.from(digest.slice(7), "hex");
}

/** The 64 hexadecimals from `from` on as 32 bytes. By hand: the way into native code and back costs more. */
export function writeHex(
  text: string,
  { from, target, at }: { from: number; target: Uint8Array; at: number },
): void {
  for (let i = 0; i < 32; i++)
    target[at + i] =
      (hexValue(text.charCodeAt(from + 2 * i)) << 4) | hexValue(text.charCodeAt(from + 2 * i + 1));
}

/** Of a lower hexadecimal digit, without a branch, because the branch would be unpredictable. */
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
