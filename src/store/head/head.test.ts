import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { entriesOf, type ForgedEntry, forgePack } from "../../../bench/support/forge-pack.ts";
import { type Digest, manualClock } from "../../base/index.ts";
import { verifyBook as verifyWithCatalog } from "../../book/maintain/index.ts";
import { useBook } from "../../book/open/index.ts";
import {
  BookHead,
  FOLDED_HEADS_KIND,
  foldedList,
  newKeyPem,
  openRecord,
  seal,
  signerFromPem,
  Task,
} from "../../contract/index.ts";
import { verifyBook } from "../../keep/verify/index.ts";
import { type Book, openBook } from "../book.ts";
import { openCatalog } from "../catalog/index.ts";
import { collectGarbage } from "../gc/index.ts";

let scratch = "";
let made = 0;
beforeAll(() => {
  scratch = mkdtempSync(join(tmpdir(), "rollbook-head-"));
});
afterAll(() => rmSync(scratch, { recursive: true, force: true }));
const fresh = () => join(scratch, String(made++));
const clock = manualClock(1_700_000_000_000);
const signer = signerFromPem(newKeyPem());
const signHead = (head: Parameters<typeof signer.signHead>[0]) => signer.signHead(head);
const sign = () => signHead;

const note = (book: Book, id: string) => book.put(Task.kind, Buffer.from(JSON.stringify({ id })));

/** A book of three sessions, and their heads, oldest first. */
async function threeSessions(): Promise<{ root: string; heads: Digest[] }> {
  const root = fresh();
  const heads: Digest[] = [];
  for (const [i, session] of ["a", "b", "c"].entries()) {
    // Packs are listed by the time their sessions began.
    const book = await openBook(root, { clock: manualClock(1_600_000_000_000 + i), sign });
    for (const n of [0, 1, 2, 3]) note(book, `${session}-${n}`);
    await book.close();
    heads.push(stateOf(root).head);
  }
  return { root, heads };
}

const stateOf = (root: string): { head: Digest; sequence: number } =>
  JSON.parse(readFileSync(join(root, "head.json"), "utf8"));

async function headOf(root: string, digest: Digest): Promise<BookHead> {
  const book = await openBook(root, { clock, mode: "read" });
  const blob = await book.get(digest);
  await book.close();
  return openRecord(BookHead, blob!.bytes, digest);
}

/** Codes and files of the findings of a scan. */
async function findingsOf(root: string): Promise<{ code: string; file: string }[]> {
  const book = await openBook(root, { clock, mode: "read" });
  const findings: { code: string; file: string }[] = [];
  for await (const item of book.scan())
    if (item.type === "damage") findings.push({ code: item.finding.code, file: item.finding.file });
  await book.close();
  return findings;
}

const packsOf = (root: string) => readdirSync(join(root, "packs")).sort();

/** Writes a pack again with other entries and valid checksums. */
async function rewrite(
  root: string,
  pack: string,
  change: (kept: ForgedEntry[]) => ForgedEntry[],
): Promise<void> {
  const path = join(root, "packs", pack);
  forgePack(path, change(await entriesOf(path)));
}

describe("heads", () => {
  it("are left by every session with a key, each chained to the one before, and fit the packs", async () => {
    const { root, heads } = await threeSessions();
    const records = await Promise.all(heads.map((head) => headOf(root, head)));
    expect(records.map(({ sequence }) => sequence)).toEqual([1, 2, 3]);
    expect(records.map(({ previous }) => previous)).toEqual([[], [heads[0]], [heads[1]]]);
    // Each head names its own pack, and the pack of the previous session with its last head.
    expect(records.map(({ packs }) => packs.length)).toEqual([1, 2, 2]);
    expect(await findingsOf(root)).toEqual([]);
  });

  it("are not written without a key, nor by a session that wrote nothing", async () => {
    const root = fresh();
    const keyless = await openBook(root, { clock });
    note(keyless, "a");
    expect(await keyless.head()).toBeUndefined();
    await keyless.close();
    await (await openBook(root, { clock, sign })).close();
    expect(readdirSync(root)).not.toContain("head.json");
  });

  it("cover what keyless and killed writers left, once somebody with a key has written", async () => {
    const root = fresh();
    const keyless = await openBook(root, { clock });
    note(keyless, "a");
    await keyless.close();
    const book = await openBook(root, { clock, sign });
    const head = await book.head();
    await book.close();
    expect((await headOf(root, head!.digest)).packs).toHaveLength(2);
  });

  it("come once a second while a session writes, and when a pack is full", async () => {
    const root = fresh();
    const book = await openBook(root, { clock, sign, packBytes: 2000 });
    note(book, "a");
    await book.flush();
    const count = async () => {
      let heads = 0;
      for await (const item of book.scan()) if (item.type === "blob" && item.kind === BookHead.kind) heads++;
      return heads;
    };
    expect(await count()).toBe(0);
    for (let i = 0; i < 10; i++) note(book, `full-${i}-${"x".repeat(200)}`);
    await new Promise((done) => setTimeout(done, 100));
    expect(await count()).toBe(1);
    note(book, "b");
    await new Promise((done) => setTimeout(done, 1200));
    expect(await count()).toBe(2);
    await book.close();
    expect(stateOf(root).sequence).toBe(2);
    expect(await findingsOf(root)).toEqual([]);
  });

  it("of two sessions at once are joined by the one that ends last", async () => {
    const root = fresh();
    const [one, two] = [await openBook(root, { clock, sign }), await openBook(root, { clock, sign })];
    note(one, "one");
    note(two, "two");
    const first = await one.head();
    const second = await two.head();
    await one.close();
    await two.close();
    const last = await headOf(root, stateOf(root).head);
    expect(last.previous).toEqual([first!.digest, second!.digest].sort());
  });

  it("of a live writer's pack name what is on disk of it", async () => {
    const root = fresh();
    // Packs are listed by the time their sessions began.
    const live = await openBook(root, { clock: manualClock(1_600_000_000_000) });
    note(live, "a");
    await live.flush();
    const book = await openBook(root, { clock, sign });
    const head = await book.head();
    expect((await headOf(root, head!.digest)).packs.map(({ entries }) => entries).sort()).toEqual([1, 2]);
    note(live, "b");
    await Promise.all([live.close(), book.close()]);
    expect(await findingsOf(root)).toEqual([]);
  });

  it("name a pack once that another writer seals while the head is made", async () => {
    const root = fresh();
    const live = await openBook(root, { clock: manualClock(1_600_000_000_000) });
    note(live, "a");
    await live.flush();
    let isSealed = () => {};
    const sealed = new Promise<void>((done) => {
      isSealed = done;
    });
    const slowly = () => (head: Parameters<typeof signHead>[0]) => sealed.then(() => signHead(head));
    const book = await openBook(root, { clock, sign: slowly });
    // The second head waits for the first, and has seen the other pack open.
    const [first, second] = [book.head(), book.head()];
    await live.close();
    isSealed();
    await first;
    const { packs } = await headOf(root, (await second)!.digest);
    expect(packs.map(({ entries }) => entries)).toEqual([2, 2]);
    await book.close();
    expect(await findingsOf(root)).toEqual([]);
  });
});

describe("a change with fitting checksums", () => {
  const attacks: [string, (root: string, pack: string) => Promise<void>][] = [
    [
      "an entry changed",
      (root, pack) =>
        rewrite(root, pack, (all) => all.with(2, { ...all[2]!, payload: Buffer.from('{"id":"x"}') })),
    ],
    ["an entry removed", (root, pack) => rewrite(root, pack, (all) => all.toSpliced(2, 1))],
    [
      "an entry added before the head",
      (root, pack) =>
        rewrite(root, pack, (all) => all.toSpliced(2, 0, { kind: Task.kind, payload: Buffer.from("{}") })),
    ],
    [
      "two entries swapped",
      (root, pack) => rewrite(root, pack, (all) => all.with(1, all[2]!).with(2, all[1]!)),
    ],
    [
      "the header changed",
      (root, pack) =>
        rewrite(root, pack, (all) =>
          all.with(0, {
            ...all[0]!,
            payload: Buffer.from(
              Buffer.from(all[0]!.payload)
                .toString()
                .replace(/"pid":\d+/, '"pid":1'),
            ),
          }),
        ),
    ],
    ["its tail cut off", (root, pack) => rewrite(root, pack, (all) => all.slice(0, 3))],
    ["the pack removed", async (root, pack) => rmSync(join(root, "packs", pack))],
  ];
  it.each(attacks)("is found in every pack but the last: %s", async (_, attack) => {
    const { root } = await threeSessions();
    for (const pack of packsOf(root).slice(0, -1)) {
      const copy = fresh();
      cpSync(root, copy, { recursive: true });
      await attack(copy, pack);
      const codes = (await findingsOf(copy)).filter(({ file }) => file.includes(pack.slice(0, -5)));
      expect(codes.map(({ code }) => code)).toEqual([expect.stringMatching(/head-mismatch|missing-pack/)]);
    }
  });

  it("of book.json is found", async () => {
    const { root } = await threeSessions();
    const other = fresh();
    await (await openBook(other, { clock: manualClock(5) })).close();
    cpSync(join(other, "book.json"), join(root, "book.json"));
    expect(await findingsOf(root)).toEqual([{ code: "head-mismatch", file: "book.json" }]);
  });
});

describe("a head that its signer did not sign", () => {
  it("counts for nothing: it can neither name packs nor keep gc from working", async () => {
    const { root, heads } = await threeSessions();
    const { signature: _, ...record } = await headOf(root, heads[0]!);
    const pack = "20200101T000000000Z-0123456789ab-000001";
    for (const wrong of [
      { book: "0".repeat(64) },
      { packs: [{ pack, entries: 3, chain: "0".repeat(64) }] },
    ]) {
      const forged = seal(BookHead, { ...record, ...wrong, sequence: 99, signature: "A".repeat(86) });
      const book = await openBook(root, { clock, sign });
      book.put(forged.kind, forged.bytes);
      await book.close();
    }
    expect(await findingsOf(root)).toEqual([]);
    expect((await collectGarbage(root, { clock, sign: signHead })).damage).toEqual([]);
  });
});

/** A book of sessions `from` … `to`, one a minute. */
async function minutes(root: string, from: number, to: number): Promise<Digest[]> {
  const heads: Digest[] = [];
  for (let minute = from; minute < to; minute++) {
    const book = await openBook(root, { clock: manualClock(minute * 60_000), sign });
    note(book, `minute-${minute}`);
    await book.close();
    heads.push(stateOf(root).head);
  }
  return heads;
}

const collectAt = (root: string, minute: number, key = signer) =>
  collectGarbage(root, {
    ...{ clock: manualClock(minute * 60_000), sign: (head) => key.signHead(head), mergeBelowBytes: 1 },
    fold: { signer: key.publicKey, atLeast: 3 },
  });

async function headsIn(root: string): Promise<Digest[]> {
  const book = await openBook(root, { clock, mode: "read" });
  const heads: Digest[] = [];
  for await (const item of book.scan())
    if (item.type === "blob" && item.kind === BookHead.kind) heads.push(item.digest);
  await book.close();
  return heads;
}

describe("gc folds heads", () => {
  it("that are older than an hour, again and again, and every one stays provable", async () => {
    const root = fresh();
    const first = await minutes(root, 0, 6);
    expect((await collectAt(root, 65)).headsFolded).toBe(5);
    expect(await headsIn(root)).toEqual(expect.arrayContaining([first[5]!, stateOf(root).head]));
    expect(await headsIn(root)).toHaveLength(2);
    const second = await minutes(root, 66, 72);
    const all = [...first, ...second, stateOf(root).head];
    // The first fold is removed, and its list is merged into the new one.
    expect((await collectAt(root, 200)).headsFolded).toBe(7);
    expect(await headsIn(root)).toHaveLength(2);
    expect(await findingsOf(root)).toEqual([]);
    for (const head of all) expect(await problemsOf(root, head)).toEqual([]);
    expect(await problemsOf(root, `sha256:${"0".repeat(64)}` as Digest)).toEqual(["head-missing"]);
  });

  it("and the catalog does not take them for lost, where a trusted key signed the fold", async () => {
    const root = fresh();
    await minutes(root, 0, 6);
    const catalog = openCatalog(root);
    await catalog.sync();
    expect((await collectAt(root, 65)).headsFolded).toBe(5);
    await catalog.sync();
    expect(catalog.lost()).toHaveLength(5);
    catalog.close();
    const differencesFor = (trustedKeys: string[]) =>
      useBook(
        root,
        { mode: "read" },
        async (book) => (await verifyWithCatalog(book, { trustedKeys })).catalog,
      );
    expect(await differencesFor([signer.publicKey])).toEqual([]);
    expect(await differencesFor([])).toHaveLength(5);
  });

  it("not where there are few, none of another key, and none without a key", async () => {
    const root = fresh();
    await minutes(root, 0, 3);
    expect((await collectAt(root, 65)).headsFolded).toBe(0);
    await minutes(root, 3, 8);
    expect((await collectAt(root, 70, signerFromPem(newKeyPem()))).headsFolded).toBe(0);
    expect((await collectGarbage(root, { clock, sign: signHead })).headsFolded).toBe(0);
  });

  it("and what they said of packs is still held against them", async () => {
    const root = fresh();
    await minutes(root, 0, 2);
    const quiet = await openBook(root, { clock: manualClock(180_000) });
    for (const n of [0, 1, 2, 3]) note(quiet, `quiet-${n}`);
    await quiet.close();
    await minutes(root, 4, 9);
    await collectAt(root, 69);
    // The packs that held heads were replaced; this pack was not.
    const pack = packsOf(root).find((name) => name.startsWith("19700101T0003"))!;
    for (const change of [
      (path: string) => rmSync(path),
      async (path: string) => forgePack(path, (await entriesOf(path)).toSpliced(2, 1)),
    ]) {
      const copy = fresh();
      cpSync(root, copy, { recursive: true });
      await change(join(copy, "packs", pack));
      expect((await findingsOf(copy)).map(({ code }) => code)).toEqual([
        expect.stringMatching(/head-mismatch|missing-pack/),
      ]);
    }
  });

  it("by an untrusted key does not stand for heads that are gone", async () => {
    const root = fresh();
    const heads = await minutes(root, 0, 6);
    const stranger = signerFromPem(newKeyPem());
    const list = foldedList(heads);
    const book = await openBook(root, { clock });
    const digest = book.put(FOLDED_HEADS_KIND, list);
    const { signature: _, signer: __, schema: ___, ...last } = await headOf(root, heads[5]!);
    const forged = stranger.signHead({ ...last, sequence: 9, packs: [], folded: { heads: 6, list: digest } });
    book.put(forged.kind, forged.bytes);
    await book.close();
    // Remove everything that the first five sessions wrote.
    for (const pack of packsOf(root).slice(0, 5)) rmSync(join(root, "packs", pack));
    expect(await problemsOf(root, heads[2]!)).toEqual(
      expect.arrayContaining(["head-missing", "missing-blob"]),
    );
    expect(await problemsOf(root, heads[2]!, [stranger.publicKey])).not.toContain("head-missing");
  });

  it("with a list that is not what the head says counts for nothing", async () => {
    const root = fresh();
    const heads = await minutes(root, 0, 2);
    const book = await openBook(root, { clock });
    const { signature: _, signer: __, schema: ___, ...last } = await headOf(root, heads[1]!);
    for (const [i, list] of [Buffer.alloc(31), Buffer.alloc(64)].entries()) {
      const folded = { heads: i + 1, list: book.put(FOLDED_HEADS_KIND, list) };
      const head = signHead({ ...last, sequence: 9 + i, packs: [], folded });
      book.put(head.kind, head.bytes);
    }
    await book.close();
    expect(await problemsOf(root, `sha256:${"0".repeat(64)}` as Digest)).toEqual([
      ...["bad-fold", "bad-fold", "head-missing"],
    ]);
  });
});

/** Problems that `verify --expect` reports. */
async function problemsOf(
  root: string,
  expected: Digest,
  keys: string[] = [signer.publicKey],
): Promise<string[]> {
  const store = await openBook(root, { clock, mode: "read" });
  const { problems } = await verifyBook(store, { trustedKeys: keys, expect: expected });
  await store.close();
  // The notes of these books are not valid tasks.
  const others = problems.filter(({ kind }) => kind !== Task.kind);
  return others.map(({ code }) => code).sort();
}

describe("gc", () => {
  it("links the old heads to the new: the packs it replaced are not missing", async () => {
    const { root, heads } = await threeSessions();
    await collectGarbage(root, { clock, sign: signHead, mergeBelowBytes: 1 });
    const garbage = await openBook(root, { clock, sign });
    garbage.put("rollbook.message.v1", Buffer.from("nobody needs it"));
    await garbage.close();
    const report = await collectGarbage(root, { clock, sign: signHead });
    expect(report.blobsRemoved).toBe(1);
    expect(await findingsOf(root)).toEqual([]);
    const last = await headOf(root, stateOf(root).head);
    expect(last.replaced).toHaveLength(1);
    for (const head of heads) expect((await headOf(root, head)).signer).toBe(signer.publicKey);
  });

  it("refuses without a key where heads name the packs, and where a head does not fit", async () => {
    const { root } = await threeSessions();
    const garbage = await openBook(root, { clock, sign });
    garbage.put("rollbook.message.v1", Buffer.from("nobody needs it"));
    await garbage.close();
    await expect(collectGarbage(root, { clock })).rejects.toMatchObject({ code: "gc-unsigned" });
    await rewrite(root, packsOf(root)[0]!, (all) => all.toSpliced(2, 1));
    await expect(collectGarbage(root, { clock, sign: signHead })).rejects.toMatchObject({
      code: "gc-damage",
    });
  });

  it("signed by another key does not excuse a pack that is gone", async () => {
    const { root } = await threeSessions();
    const garbage = await openBook(root, { clock, sign });
    garbage.put("rollbook.message.v1", Buffer.from("nobody needs it"));
    await garbage.close();
    const stranger = signerFromPem(newKeyPem());
    await collectGarbage(root, { clock, sign: (head) => stranger.signHead(head) });
    const [finding] = await findingsOf(root);
    expect(finding!.code).toBe("foreign-replacement");
    await expect(collectGarbage(root, { clock, sign: signHead })).rejects.toMatchObject({
      code: "gc-damage",
    });
    const trusted = new Set<string>([stranger.publicKey]);
    expect((await collectGarbage(root, { clock, sign: signHead, trusted })).damage).toEqual([]);
  });
});
