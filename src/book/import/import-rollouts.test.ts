import { writeFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { libraryHome } from "../../../test/support/library-home.ts";
import { draftWire, makeRevision } from "../../../test/support/shelf.ts";
import { encodeWire, PolicyRevision } from "../../contract/index.ts";
import { memoryStore } from "../../store/index.ts";
import { ensureKey, ownKeyring } from "../open/keyring.ts";
import { bookOver, openBook } from "../open/open-book.ts";
import { listRollouts } from "../rollouts/rollouts.ts";
import { type ImportRecord, importRollouts } from "./import-rollouts.ts";

const revision = encodeWire(PolicyRevision, makeRevision("policy-r1").record) as unknown as ImportRecord;
const draft = (name: string) => draftWire(name) as ImportRecord;
const bad = { ...draft("bad"), ending: { kind: "no-such" } };
const jsonl = (...records: object[]) => records.map((each) => `${JSON.stringify(each)}\n`).join("");

async function* chunks(...texts: string[]) {
  for (const text of texts) yield Buffer.from(text);
}

const idsOf = async (book: ReturnType<typeof bookOver>) =>
  (await listRollouts(book)).map(({ rolloutId, content }) => `${rolloutId} ${content}`);

describe("importRollouts", () => {
  it("takes a path, a stream, records and a mix of them, and the book holds the same", async () => {
    const { path } = libraryHome();
    const all = [revision, draft("a"), draft("b")];
    writeFileSync(path("r.jsonl"), jsonl(...all));
    const [text, rest] = [jsonl(...all).slice(0, 700), jsonl(...all).slice(700)];
    const inputs = [
      path("r.jsonl"),
      chunks(text, rest),
      all,
      [revision, draft("a"), chunks(jsonl(draft("b")))],
    ];
    const books = [];
    for (const input of inputs) {
      const book = bookOver(memoryStore());
      expect(await importRollouts(book, input)).toMatchObject({ imported: 3, refused: 0, signedBy: null });
      books.push(await idsOf(book));
    }
    expect(new Set(books.map((each) => each.join())).size).toBe(1);
    expect(books[0]).toHaveLength(2);
  });

  it("throws on a refused record once the others are in, and names the first", async () => {
    const book = bookOver(memoryStore());
    await expect(importRollouts(book, [revision, bad, draft("a")])).rejects.toMatchObject({
      code: "import-refused",
      fields: { imported: 2, refused: 1 },
      message: expect.stringContaining("<records>:2"),
    });
    expect(await idsOf(book)).toHaveLength(1);
  });

  it("tells refusals instead where it is asked to", async () => {
    const book = bookOver(memoryStore());
    const refused: string[] = [];
    const report = await importRollouts(book, [revision, bad], {
      onRefusal: ({ message }) => refused.push(message),
    });
    expect(report).toMatchObject({ imported: 1, refused: 1 });
    expect(refused).toEqual([expect.stringContaining("ending")]);
  });

  it("writes nothing in strict mode, also of a stream, which can be read once only", async () => {
    const book = bookOver(memoryStore());
    const input = () => chunks(jsonl(revision, draft("a")), jsonl(bad));
    await expect(importRollouts(book, input(), { strict: true })).rejects.toMatchObject({
      code: "import-refused",
    });
    expect(await idsOf(book)).toEqual([]);
    expect(await importRollouts(book, chunks(jsonl(revision, draft("a"))), { strict: true })).toMatchObject({
      imported: 2,
    });
  });

  it("signs with the key of the book", async () => {
    const { path } = libraryHome();
    const { signer } = ensureKey(ownKeyring());
    const book = await openBook(path("runs"), { create: true });
    expect((await importRollouts(book, [revision, draft("a")])).signedBy).toBe(signer.publicKey);
    await book.close();
  });

  it("refuses a path that is not there before it writes anything", async () => {
    const book = bookOver(memoryStore());
    await expect(importRollouts(book, [revision, "no-such.jsonl"])).rejects.toMatchObject({
      code: "no-file",
    });
    expect((await book.index()).ofKind(PolicyRevision.kind)).toEqual([]);
  });
});
