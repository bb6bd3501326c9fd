import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { mapBucket } from "../../../test/support/map-bucket.ts";
import { encodeBook } from "../pack/index.ts";
import { RemoteBook } from "./remote-book.ts";
import { BOOK_KEY } from "./remote-keys.ts";

it("a server that overwrites what is there is refused before a pack is written", async () => {
  const root = mkdtempSync(join(tmpdir(), "rollbook-remote-"));
  onTestFinished(() => rmSync(root, { recursive: true }));
  const objects = new Map<string, Uint8Array>([
    [BOOK_KEY, encodeBook({ createdAtMs: 0, id: "book-00000000-0000-4000-8000-000000000000" })],
  ]);
  const remote = new RemoteBook(mapBucket(objects, ["If-None-Match"]), root);
  await remote.pull();
  await expect(remote.settleBook()).rejects.toMatchObject({ code: "unconditional-bucket" });
});
