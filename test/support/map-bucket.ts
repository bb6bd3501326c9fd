/** A bucket in memory, whose server may ignore conditions. For tests only. */
import type { Bucket } from "../../src/store/remote/bucket.ts";

export type IgnoredCondition = "If-Match" | "If-None-Match";

export function mapBucket(objects: Map<string, Uint8Array>, ignored: readonly IgnoredCondition[]): Bucket {
  const put = (key: string, bytes: Uint8Array, isAllowed: boolean) => {
    if (isAllowed) objects.set(key, bytes);
    return isAllowed;
  };
  const putNew = async (key: string, bytes: Uint8Array) =>
    put(key, bytes, ignored.includes("If-None-Match") || !objects.has(key));
  return {
    url: "s3://careless",
    putNew,
    putNewFile: async () => true,
    putIf: async (key, bytes, version) =>
      version === undefined
        ? putNew(key, bytes)
        : put(key, bytes, ignored.includes("If-Match") || (objects.has(key) && version === "1")),
    getVersion: async (key) => {
      const bytes = objects.get(key);
      return bytes === undefined ? undefined : { bytes, version: "1" };
    },
    replace: async (key, bytes) => void put(key, bytes, true),
    get: async (key) => objects.get(key),
    getFile: async () => false,
    async *list(prefix) {
      for (const [key, { length }] of objects)
        if (key.startsWith(prefix)) yield { key, bytes: length, modifiedMs: 0 };
    },
    async delete(keys) {
      for (const key of keys) objects.delete(key);
    },
    nowMs: async () => 0,
  };
}
