/** Whether a server honours conditions on writes. Without them, of two writers both succeed and one is lost.
 *  In: a bucket, a key that nothing else uses. Writes that key alone, and removes it. */
import { RollbookError } from "../../base/index.ts";
import type { Bucket } from "./bucket.ts";

/** No server gives an object this version. */
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
