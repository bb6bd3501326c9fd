import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { encodeBook } from "../pack/index.ts";
import type { Bucket } from "./bucket.ts";
import { RemoteBook } from "./remote-book.ts";
import { BOOK_KEY } from "./remote-keys.ts";

it("a server that overwrites what is there is refused before a pack is written", async () => {
  const root = mkdtempSync(join(tmpdir(), "rollbook-remote-"));
  onTestFinished(() => rmSync(root, { recursive: true }));
  const objects = new Map<string, Uint8Array>([
    [BOOK_KEY, encodeBook({ createdAtMs: 0, id: "book-00000000-0000-4000-8000-000000000000" })],
  ]);
  const remote = new RemoteBook(careless(objects), root);
  await remote.pull();
  await expect(remote.settleBook()).rejects.toMatchObject({ code: "unconditional-bucket" });
});

/** As a server that does not know If-None-Match. */
function careless(objects: Map<string, Uint8Array>): Bucket {
  const put = async (key: string, bytes: Uint8Array) => {
    objects.set(key, bytes);
    return true;
  };
  return {
    url: "s3://careless",
    putNew: put,
    putNewFile: async () => true,
    putIf: put,
    getVersion: async (key) => {
      const bytes = objects.get(key);
      return bytes === undefined ? undefined : { bytes, version: "1" };
    },
    replace: async (key, bytes) => void (await put(key, bytes)),
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
