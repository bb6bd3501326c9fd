import { cpSync, mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { systemClock } from "../../src/base/clock.ts";
import type { Digest } from "../../src/base/digest.ts";
import { parseId } from "../../src/base/ids.ts";
import { Journal } from "../../src/collect/gateway/journal/index.ts";
import { Attestation, BookHead, type EnvironmentKey, Tombstone } from "../../src/contract/index.ts";
import { openBook } from "../../src/store/index.ts";
import { filesHolding } from "../support/book-files.ts";
import { Cli, lines } from "../support/cli.ts";
import { draftWire, makeRevision } from "../support/shelf.ts";

const SECRET = "my name is Ada Example";
const call = (text: string, reply: string) => ({
  dialect: "openai-chat",
  model: "m",
  request: {
    messages: [
      { role: "system", content: "shared instructions" },
      { role: "user", content: text },
    ],
    parameters: {},
  },
  response: { messages: [{ role: "assistant", content: reply }] },
});
const rollout = (id: string, text: string, number: number) =>
  draftWire(id, { calls: [call(text, "shared reply")] }, { ids: [number, 202, 303] });
const revision = JSON.parse(Buffer.from(makeRevision("policy-r1").bytes).toString());

/** Three rollouts, each in its own pack, signed unless `key` is false. Rollout b has feedback. `batch` holds the
 *  options of a batch to assemble. */
async function bookWith(options: { batch?: string; key?: boolean } = {}): Promise<Cli> {
  const cli = new Cli();
  await cli.ok("init");
  if (options.key !== false) await cli.ok("keys new");
  await cli.ok("artifact import -", lines(revision, rollout("a", "public question", 1)));
  await cli.ok("artifact import -", lines(rollout("b", SECRET, 2)));
  await cli.ok("artifact import -", lines(rollout("c", "another question", 3)));
  await cli.ok(["feedback", "b", "--name", "solved", "--value", "1", "--source", "Ada Example"]);
  if (options.batch !== undefined)
    await cli.ok(`batch assemble --target policy-r1 --level token ${options.batch}`);
  return cli;
}

const erase = (cli: Cli, ...more: string[]) =>
  cli.run(["artifact", "erase", "b", "--reason", "request 17", ...more]);

async function blobsIn(root: string): Promise<Map<Digest, { kind: string; bytes: Uint8Array }>> {
  const book = await openBook(root, { clock: systemClock, mode: "read" });
  const found = new Map<Digest, { kind: string; bytes: Uint8Array }>();
  for await (const item of book.scan())
    if (item.type === "blob" && item.kind !== BookHead.kind)
      found.set(item.digest, { kind: item.kind, bytes: item.bytes.slice() });
  await book.close();
  return found;
}

describe("artifact erase", () => {
  it("says what would go and removes nothing without --yes", async () => {
    const cli = await bookWith();
    const before = await blobsIn(cli.book);
    const told = await erase(cli);
    expect(told).toMatchObject({
      code: 1,
      out: expect.stringMatching(/^would erase b: 3 records and \d+ blobs/),
    });
    expect(told.err).toContain("[not-confirmed]");
    expect([...(await blobsIn(cli.book)).keys()].sort()).toEqual([...before.keys()].sort());
  });

  it("removes the bytes of a rollout from every file of the book and leaves what others need", async () => {
    const cli = await bookWith();
    expect(filesHolding(cli.book, "Ada Example").length).toBeGreaterThan(1);
    const before = await blobsIn(cli.book);
    const { code, out } = await erase(cli, "--yes", "--json");
    expect(code).toBe(0);
    const report = JSON.parse(out);
    expect(report).toMatchObject({ dryRun: false, rollouts: ["b"], batches: [], journal: [], torn: [] });
    expect(report.records.map((each: { kind: string }) => each.kind).sort()).toEqual([
      "rollbook.feedback.v1",
      "rollbook.rollout-content.v1",
      "rollbook.rollout-envelope.v1",
    ]);
    expect(filesHolding(cli.book, "Ada Example")).toEqual([]);
    const after = await blobsIn(cli.book);
    const gone = [...before.keys()].filter((digest) => !after.has(digest)).sort();
    const named = [...report.records, ...report.blobs].map((each: { digest: Digest }) => each.digest);
    expect(gone).toEqual(named.sort());
    const texts = [...after.values()].map(({ bytes }) => Buffer.from(bytes).toString());
    for (const kept of ["shared instructions", "shared reply", "public question", "another question"])
      expect(texts.filter((text) => text.includes(`"${kept}"`))).toHaveLength(1);
  });

  it("lets verify say erased, with the tombstone, and every other command go on without the rollout", async () => {
    const cli = await bookWith();
    await cli.ok("artifact admit --validate");
    expect((await erase(cli, "--yes")).code).toBe(0);
    const [report] = await cli.json("verify");
    expect(report).toMatchObject({
      ok: true,
      problems: [],
      erased: {
        rollouts: [{ rollout: "b" }],
        batches: [],
        tombstones: [{ reason: "request 17", by: "owner", signed: true, trusted: true }],
      },
      catalog: [],
    });
    expect(report.erased.references).toBeGreaterThan(0);
    const words = await cli.ok("verify --require-trusted");
    expect(words).toContain("erased: 1 rollout (b)");
    expect(words).toMatch(
      /tombstone [0-9a-f]{12} by owner on 1970-01-01, \d+ blobs: request 17 \(signed by a trusted key\)/,
    );
    expect((await cli.json("artifact ls")).map(({ rolloutId }) => rolloutId)).toEqual(["a", "c"]);
    const [batch] = await cli.json("batch assemble --target policy-r1 --level token");
    expect(batch.batch.totals.rows).toBe(2);
    await cli.ok("artifact admit --validate");
    for (const words of ["artifact show b", "verify b", "feedback b --name solved --value 0"])
      expect(await cli.run(words), words).toMatchObject({
        code: 1,
        err: expect.stringMatching(/b was erased: the tombstone .*\[erased\]/),
      });
    await cli.ok("gc");
    expect((await cli.json("verify"))[0].erased.rollouts).toHaveLength(1);
    await cli.ok("catalog rebuild");
    await cli.ok("verify");
  });

  it("works beside the weights of a model, which stay as long as their revision", async () => {
    const cli = await bookWith();
    const weights = cli.file("weights.bin", Buffer.from([0, 255, 1, 254]));
    const [{ digest }] = await cli.json(`train weights ${weights} --family tiny --id tiny-1`);
    await cli.ok("artifact erase b --reason request --yes");
    const [gc] = await cli.json("gc");
    expect(gc).toMatchObject({ keepsAll: false, unknownKinds: [] });
    expect((await cli.json(`cat ${digest}`))[0]).toMatchObject({ bytes: 4 });
    expect(filesHolding(cli.book, SECRET)).toEqual([]);
  });

  it("refuses to take the rollout, its envelope or its feedback in again", async () => {
    const cli = await bookWith();
    await erase(cli, "--yes");
    const again = await cli.run("artifact import -", lines(rollout("b", SECRET, 2)));
    expect(again).toMatchObject({
      code: 1,
      err: expect.stringMatching(/erased from the book on purpose.*\[erased\]/),
    });
    const other = { ...rollout("b", SECRET, 2), envelope: { worker: "w2", startedAtMs: 1, endedAtMs: 2 } };
    expect((await cli.run("artifact import -", lines(other))).err).toContain("[erased]");
    expect(filesHolding(cli.book, SECRET)).toEqual([]);
    // Another rollout may hold the same message. It is then content of that rollout.
    await cli.ok("artifact import -", lines(rollout("d", SECRET, 4)));
    await cli.ok("verify");
    expect((await erase(cli, "--yes")).code).toBe(0);
    expect(await cli.ok("artifact verify d")).toContain("self-consistent: yes");
  });

  it("refuses while a batch holds rows of it, and with --with-batches erases their shards", async () => {
    const cli = await bookWith({ batch: "--artifact a b" });
    await cli.ok("batch assemble --target policy-r1 --level token --artifact a c");
    const [first, second] = await cli.json("batch show");
    const refused = await erase(cli, "--yes");
    expect(refused).toMatchObject({ code: 1, err: expect.stringContaining("--with-batches") });
    expect(filesHolding(cli.book, SECRET)).not.toEqual([]);
    expect((await cli.json("verify"))[0].erased.tombstones).toEqual([]);

    const erased = await erase(cli, "--yes", "--with-batches", "--json");
    expect(erased.code).toBe(0);
    const { batches, records } = JSON.parse(erased.out);
    expect(batches).toHaveLength(1);
    expect(records.map(({ kind }: { kind: string }) => kind)).toContain("rollbook.batch-shard.v1");
    const [held, other] = first.digest === batches[0] ? [first, second] : [second, first];
    expect((await cli.json("verify"))[0]).toMatchObject({
      ok: true,
      erased: { batches: [{ batch: held.digest, erased: 1, artifacts: 2 }] },
    });
    expect(await cli.ok(`verify ${held.digest}`)).toContain("cannot be assembled again: 1 of its 2 rollouts");
    expect(await cli.run(`batch verify ${held.digest}`)).toMatchObject({
      code: 1,
      err: expect.stringMatching(/cannot be assembled again: 1 of its 2 rollouts.*\[erased\]/),
    });
    await cli.ok(`batch verify ${other.digest}`);
    const out = join(cli.folder, "rows.jsonl");
    const [{ digest: tombstone }] = (await cli.json("verify"))[0].erased.tombstones;
    expect(await cli.run(`batch export ${held.digest} --format jsonl --out ${out}`)).toMatchObject({
      code: 1,
      err: expect.stringMatching(
        new RegExp(`were erased on purpose.*${tombstone.slice(7, 19)}.*\\[erased\\]`),
      ),
    });
    await cli.ok(`batch export ${other.digest} --format jsonl --out ${out}`);
  });

  it("names batches that considered a rollout and hold no row of it: readable, but not to be assembled again", async () => {
    const cli = await bookWith();
    const cancelled = { ...rollout("d", "cancelled question", 4), ending: { kind: "cancelled" } };
    await cli.ok("artifact import -", lines(cancelled));
    const assemble = "batch assemble --target policy-r1 --level token";
    const [{ digest: wide }] = await cli.json(assemble);
    const [{ digest: narrow }] = await cli.json(`${assemble} --artifact a c`);
    const said = `1 batch excluded these rollouts: its rows stay readable, but \`batch verify\` can no longer assemble it again: ${wide.slice(7, 19)}\n`;
    const words = ["artifact", "erase", "d", "--reason", "request 18"];
    expect((await cli.run(words)).err).toContain(said);
    expect(await cli.run([...words, "--yes"])).toMatchObject({ code: 0, err: expect.stringContaining(said) });
    expect((await cli.json("verify"))[0].erased.batches).toMatchObject([{ batch: wide }]);
    expect((await cli.run(`batch verify ${wide}`)).code).toBe(1);
    await cli.ok(`batch verify ${narrow}`);
    await cli.ok(`batch export ${wide} --format jsonl --out ${join(cli.folder, "rows.jsonl")}`);
    const again = JSON.parse((await erase(cli, "--yes", "--with-batches", "--json")).out);
    expect(again).toMatchObject({ batches: [wide], batchesKept: [] });
  });

  it("does not take an unsigned tombstone for an erasure where trust is required", async () => {
    const cli = await bookWith({ key: false });
    await cli.ok(["artifact", "erase", "b", "--reason", "forged", "--yes"]);
    await cli.ok("keys new");
    await cli.ok(
      "artifact import -",
      lines(revision, rollout("a", "public question", 1), rollout("c", "another question", 3)),
    );
    expect(await cli.ok("verify")).toContain("NOT signed");
    const alone = await cli.run("verify --require-trusted");
    expect([alone.code, alone.err]).toEqual([
      1,
      expect.stringMatching(
        /1 record without a signature of a trusted key \(1 tombstone\)\. Records that the tombstone names may be lost, not erased.*\[not-trusted\]/,
      ),
    ]);
    // Another reader trusts none of the records.
    expect((await new Cli().run(["verify", "--require-trusted", "--book", cli.book])).err).toMatch(
      /\d+ records without .* \(.*2 rollout-envelope.*1 tombstone\)\. \d+ signed by a key you do not trust/,
    );
  });

  it("does not let a tombstone hide what it does not name, nor what it names and is there", async () => {
    const cli = await bookWith();
    await erase(cli, "--yes");
    const stone = [...(await blobsIn(cli.book)).entries()].find(([, { kind }]) => kind === Tombstone.kind)!;
    const other = await bookWith();
    const book = await openBook(other.book, { clock: systemClock });
    book.put(Tombstone.kind, stone[1].bytes);
    await book.close();
    const { code, out } = await other.run("verify --json");
    expect(code).toBe(1);
    const { problems } = JSON.parse(out);
    expect(new Set(problems.map((each: { code: string }) => each.code))).toEqual(
      new Set(["erase-unfinished"]),
    );
  });

  it("waits for a writer that still holds the rollout", async () => {
    const cli = await bookWith();
    const held = [...(await blobsIn(cli.book)).values()].filter(({ bytes }) =>
      Buffer.from(bytes).includes(SECRET),
    );
    const writer = await openBook(cli.book, { clock: systemClock });
    for (const { kind, bytes } of held) writer.put(kind, bytes);
    await writer.flush();
    expect(await erase(cli, "--yes")).toMatchObject({
      code: 1,
      err: expect.stringContaining("[erase-busy]"),
    });
    expect((await cli.json("verify"))[0].erased.tombstones).toEqual([]);
    // Without --yes the command still lists the records, and reports the refusal that --yes would meet.
    expect(await erase(cli)).toMatchObject({
      ...{ code: 1, out: expect.stringMatching(/^would erase b: \d+ records/) },
      err: expect.stringMatching(/with --yes it would be refused: [^[]* \[not-confirmed\]/),
    });
    await writer.close();
    expect((await erase(cli, "--yes")).code).toBe(0);
    expect(filesHolding(cli.book, SECRET)).toEqual([]);
  });

  it("names the open rollouts whose journal still holds the rollout, and the steps that remove it", async () => {
    const cli = await bookWith();
    const journal = Journal.open(join(cli.book, "journal/gw"), { event() {}, called() {} });
    for (const id of ["b", "open-1"])
      journal.event(parseId(id), {
        ...({ kind: "opened", dataSource: "real", seed: 1n, atMs: 1 } as const),
        ...{ worker: parseId("gw"), environment: "e@1" as EnvironmentKey, task: { id: parseId("t") } },
      });
    journal.event(parseId("b"), { kind: "closed", ending: { kind: "terminal" }, scores: [], atMs: 2 });
    await journal.close();
    const held =
      "journal/gw/0000000001.log holds calls of it while 1 rollout of its journal is open (open-1).";
    expect((await erase(cli)).err).toContain(held);
    const { code, err } = await erase(cli, "--yes");
    expect(code).toBe(1);
    expect(err).toContain(`erased from the book, but not from a journal. ${held}`);
    expect(err).toMatch(
      /- start the gateway again under its name, gw, if it is stopped.*\n.*- close .*\/v1\/rollouts\/open-1\/close.*\n.*- run this command again \[journal-holds\]/,
    );
  });

  it("says that a start of the gateway frees a journal without open rollouts", async () => {
    const cli = await bookWith();
    mkdirSync(join(cli.book, "journal/gateway"), { recursive: true });
    writeFileSync(join(cli.book, "journal/gateway/0000000001.log"), '{"rollout":"b"}');
    expect((await erase(cli, "--yes")).err).toMatch(
      /0000000001\.log holds calls of it until its gateway starts again\. .*\n.*start the gateway again under its name, gateway: /,
    );
  });
});

describe("an erasure that is cut short", () => {
  it("is finished by the same command, whatever was written and removed by then", async () => {
    const done = await bookWith();
    const before = join(done.folder, "before");
    cpSync(done.book, before, { recursive: true });
    expect((await erase(done, "--yes")).code).toBe(0);
    const wanted = [...(await blobsIn(done.book)).keys()].sort();
    const packsOf = (book: string) => readdirSync(join(book, "packs")).sort();
    const doomed = packsOf(before).filter((name) => !packsOf(done.book).includes(name));
    expect(doomed.length).toBeGreaterThan(1);
    const stones = [...(await blobsIn(done.book)).values()].filter(
      ({ kind }) => kind === Tombstone.kind || kind === Attestation.kind,
    );

    // A crash here leaves only the tombstone durable.
    const early = new Cli();
    cpSync(before, early.book, { recursive: true });
    cpSync(done.home, early.home, { recursive: true });
    const book = await openBook(early.book, { clock: systemClock });
    for (const { kind, bytes } of stones) book.put(kind, bytes);
    await book.close();
    expect((await early.run("verify")).out).toContain("[erase-unfinished]");
    expect(await erase(early, "--yes")).toMatchObject({ code: 0 });
    expect([...(await blobsIn(early.book)).keys()].sort()).toEqual(wanted);
    await early.ok("verify --require-trusted");

    // A crash here leaves the new packs, with the first few old packs removed.
    for (let removed = 0; removed <= doomed.length; removed++) {
      const cut = new Cli();
      cpSync(done.book, cut.book, { recursive: true });
      cpSync(done.home, cut.home, { recursive: true });
      for (const name of doomed.slice(removed))
        cpSync(join(before, "packs", name), join(cut.book, "packs", name));
      rmSync(join(cut.book, "catalog.db"), { force: true });
      expect((await erase(cut, "--yes")).code, `${removed} packs removed`).toBe(0);
      expect([...(await blobsIn(cut.book)).keys()].sort()).toEqual(wanted);
      expect(filesHolding(cut.book, SECRET)).toEqual([]);
      await cut.ok("verify --require-trusted");
    }
  });
});
