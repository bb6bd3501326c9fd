/** A bucket in memory. Its server may ignore conditions, or fail from a given write on. For tests only. */
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import type { Bucket } from "../../src/store/remote/bucket.ts";

export type IgnoredCondition = "If-Match" | "If-None-Match";

interface MapBucketOptions {
  /** The clock of the server. */
  readonly nowMs?: () => number;
  /** Called before each change. It may throw, to simulate a broken connection. */
  readonly onChange?: (key: string) => void;
}

/** Times of change by map: buckets over one map are one server and share them. */
const times = new WeakMap<Map<string, Uint8Array>, Map<string, number>>();

export function mapBucket(
  objects: Map<string, Uint8Array>,
  ignored: readonly IgnoredCondition[] = [],
  { nowMs = () => 0, onChange = () => {} }: MapBucketOptions = {},
): Bucket {
  const modified = times.get(objects) ?? new Map<string, number>();
  times.set(objects, modified);
  const versionOf = (bytes: Uint8Array) => `"${createHash("md5").update(bytes).digest("hex")}"`;
  const put = (key: string, bytes: Uint8Array, isAllowed: boolean) => {
    onChange(key);
    if (isAllowed) {
      objects.set(key, Uint8Array.from(bytes));
      modified.set(key, nowMs());
    }
    return isAllowed;
  };
  const isAllowed = (key: string, version: string | undefined) => {
    const there = objects.get(key);
    if (version === undefined) return ignored.includes("If-None-Match") || there === undefined;
    return ignored.includes("If-Match") || (there !== undefined && versionOf(there) === version);
  };
  const putIf = async (key: string, bytes: Uint8Array, version: string | undefined) =>
    put(key, bytes, isAllowed(key, version));
  return {
    url: "s3://memory",
    putIf,
    putNew: (key, bytes) => putIf(key, bytes, undefined),
    putNewFile: async (key, path) => putIf(key, readFileSync(path), undefined),
    getVersion: async (key) => {
      const bytes = objects.get(key);
      return bytes === undefined ? undefined : { bytes, version: versionOf(bytes) };
    },
    replace: async (key, bytes) => void put(key, bytes, true),
    get: async (key) => objects.get(key),
    getFile: async (key, path) => {
      const bytes = objects.get(key);
      if (bytes !== undefined) writeFileSync(path, bytes);
      return bytes !== undefined;
    },
    async *list(prefix) {
      for (const [key, bytes] of [...objects].sort(([a], [b]) => (a < b ? -1 : 1)))
        if (key.startsWith(prefix)) {
          const { length } = bytes;
          yield { key, bytes: length, modifiedMs: modified.get(key) ?? 0, version: versionOf(bytes) };
        }
    },
    async delete(keys) {
      for (const key of keys) {
        onChange(key);
        objects.delete(key);
      }
    },
    nowMs: async () => nowMs(),
  };
}
