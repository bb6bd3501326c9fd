import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { d, exampleWire } from "../../../test/support/examples.ts";
import { canonicalize } from "../../base/index.ts";
import { RECORD_TYPES } from "../../contract/records.ts";
import { openCatalog, openSqlite } from "../../store/index.ts";
import { verifyBook } from "../maintain/verify.ts";
import { openBook, useBook } from "./open-book.ts";
import { rebuildCatalog } from "./rebuild-catalog.ts";

let root = "";
beforeAll(async () => {
  root = mkdtempSync(join(tmpdir(), "rollbook-compare-"));
  const book = await openBook(root, { create: true, signer: () => undefined });
  for (const { kind } of RECORD_TYPES) book.store.put(kind, Buffer.from(canonicalize(exampleWire(kind))));
  await book.close();
  const catalog = openCatalog(root);
  await catalog.sync();
  catalog.close();
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

const differences = () =>
  useBook(root, { mode: "read" }, async (book) => (await verifyBook(book, { trustedKeys: [] })).catalog!);

describe("verify", () => {
  it("finds nothing to say of a catalog that was made from the bytes", async () => {
    expect(await differences()).toEqual([]);
  });

  it.each([
    ["UPDATE digests SET digest = zeroblob(32) WHERE number = (SELECT min(number) FROM blobs)"],
    ["DELETE FROM digests WHERE number = (SELECT max(source) FROM refs)"],
    ["INSERT INTO digests VALUES (1000000, randomblob(32))"],
    ["DELETE FROM blobs WHERE number = (SELECT max(number) FROM blobs)"],
    ["UPDATE blobs SET offset = offset + 8"],
    ["DELETE FROM records WHERE number = (SELECT max(number) FROM records)"],
    ["UPDATE records SET fields = '{}'"],
    ["INSERT INTO records VALUES (1000000, 'x', NULL, NULL, '{}')"],
    ["DELETE FROM refs WHERE source = (SELECT max(source) FROM refs)"],
    ["INSERT INTO refs VALUES (1000000, 1)"],
    [`INSERT INTO lost VALUES (x'${d("lost").slice(7)}', 'rollbook.task.v1', 'gone')`],
  ])("finds the change of a table: %s", async (change) => {
    await useBook(root, {}, rebuildCatalog);
    expect(await differences()).toEqual([]);
    const db = openSqlite(join(root, "catalog.db"));
    db.exec(change);
    db.close();
    expect(await differences()).not.toEqual([]);
  });
});
