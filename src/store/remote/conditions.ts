/** Tests if a server honours conditional writes. Without them two writers both succeed, and one write is lost.
 *  In: a bucket, and a key that nothing else uses. Writes only that key, and removes it. */
import { RollbookError } from "../../base/index.ts";
import type { Bucket } from "./bucket.ts";

/** A version that no server gives to an object. */
const NO_VERSION = '"00000000000000000000000000000000"';

export async function requireConditions(bucket: Bucket, key: string): Promise<void> {
  const bytes = Buffer.from("probe");
  await bucket.putNew(key, bytes);
  try {
    if (await bucket.putNew(key, bytes)) throw unconditional(bucket.url, "If-None-Match");
    if (await bucket.putIf(key, bytes, NO_VERSION)) throw unconditional(bucket.url, "If-Match");
  } finally {
    await bucket.delete([key]);
  }
}

export function unconditional(url: string, condition: "If-Match" | "If-None-Match"): RollbookError {
  return new RollbookError(
    "unconditional-bucket",
    { url, condition },
    `${url}: the server ignores the condition ${condition}, so that writers would overwrite each other. Use a server that honours it.`,
  );
}
