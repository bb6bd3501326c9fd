/** A store in memory, for tests and for work that need not outlive the process.
 *  In: blobs. Out: the same blobs, checked. `flush` does nothing. */
import { type Digest, digestBytes } from "../../base/index.ts";
import { type Blob, type BlobStore, checkKind, closedError, damageError, itemsOf } from "./blob-store.ts";

export function memoryStore(): BlobStore {
  const blobs = new Map<Digest, Blob>();
  let closed = false;
  const live = (): Map<Digest, Blob> => {
    if (closed) throw closedError();
    return blobs;
  };
  const checked = (digest: Digest, blob: Blob): Blob => {
    const actual = digestBytes(blob.kind, blob.bytes);
    if (actual === digest) return blob;
    const message = `content is ${actual}, wanted was ${digest}; the bytes were changed after put`;
    const at = { file: "memory", offset: 0, length: blob.bytes.length };
    throw damageError({ code: "digest-mismatch", ...at, message, expected: digest, actual });
  };
  return {
    put(kind, bytes) {
      checkKind(kind);
      const digest = digestBytes(kind, bytes);
      if (!live().has(digest)) blobs.set(digest, { kind, bytes: Uint8Array.from(bytes) });
      return digest;
    },
    async flush() {
      live();
    },
    async get(digest) {
      const blob = live().get(digest);
      return blob === undefined ? undefined : checked(digest, blob);
    },
    async has(digest) {
      return live().has(digest);
    },
    scan() {
      return itemsOf(this.scanRuns());
    },
    async *scanRuns() {
      for (const [digest, blob] of live()) {
        const location = { file: "memory", offset: 0, length: blob.bytes.length };
        yield [{ type: "blob", digest, hex: digest.slice(7), ...checked(digest, blob), location }];
      }
    },
    async close() {
      closed = true;
    },
  };
}
