import { readdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { encodeWire, PolicyRevision } from "../../src/contract/index.ts";
import { Cli, lines } from "../support/cli.ts";
import { draftWire, makeRevision, stepWire } from "../support/shelf.ts";

const revisionWire = (id: string) => encodeWire(PolicyRevision, makeRevision(id).record);
const rollouts = (count: number) =>
  Array.from({ length: count }, (_, i) => draftWire(`r-${i + 1}`, {}, { rewards: [0, 0.25, i] }));

/** A book with a key, two revisions and some rollouts. */
async function filled(count = 4): Promise<Cli> {
  const cli = new Cli();
  await cli.ok("init");
  await cli.ok("keys new");
  const file = cli.file(
    "in.jsonl",
    lines(revisionWire("policy-r1"), revisionWire("policy-r2"), ...rollouts(count)),
  );
  await cli.ok(["artifact", "import", file]);
  return cli;
}

describe("a book from the command line", () => {
  it("goes from drafts to a verified batch, and every step has a JSON form", async () => {
    const cli = await filled();
    expect((await cli.json("artifact ls")).map((row) => row.rolloutId)).toEqual(["r-1", "r-2", "r-3", "r-4"]);
    const [made] = await cli.json("batch assemble --target policy-r2 --level token --seed 7");
    expect(made.batch.totals).toMatchObject({ rows: 4, samples: 8, rewardSum: 7 });
    expect(made.lineage.sources.map((source: { id: string }) => source.id)).toEqual(["policy-r1"]);
    const prefix = made.digest.slice(7, 15);
    expect(await cli.json(`batch show ${prefix}`)).toEqual([made]);
    expect(await cli.ok(`batch show ${prefix}`)).toContain("4 batched + 0 excluded");
    const [report] = await cli.json("verify");
    expect(report).toMatchObject({ ok: true, trust: { artifacts: 4, signed: 4, trusted: 4 } });
    expect(await cli.ok(`batch verify ${prefix}`)).toContain("self-consistent: yes");
    expect(await cli.ok("verify r-2 --require-trusted")).toContain("1 of 1 artifact, 1 by a trusted key");
    expect(await cli.ok("artifact verify r-1 r-3")).toContain("rollout-content r-3");
  });

  it("says of each proof what it is, and of a rollout without any that it has none", async () => {
    const cli = await filled(0);
    const envelope = { worker: "worker-a", startedAtMs: 1100, endedAtMs: 1200 };
    const proofs = [{ kind: "execution", digest: `sha256:${"a".repeat(64)}`, reference: "run.log" }];
    await cli.ok(
      "artifact import -",
      lines(
        draftWire("bare", { envelope: { ...envelope, proofs: [] } }),
        draftWire("proved", { envelope: { ...envelope, proofs } }),
      ),
    );
    expect(await cli.ok("artifact show bare")).toContain("    no proof of execution\n");
    expect(await cli.ok("artifact show proved")).toContain(
      "    proof execution: a record of what ran (run.log)\n",
    );
  });

  it("gives back with show what import takes, byte for byte the same artifact", async () => {
    const cli = await filled();
    const text = await cli.ok("artifact show r-3 --json");
    expect(await cli.ok("artifact import -", text)).toContain("0 imported, 1 already there");
    const other = new Cli();
    await other.ok("init");
    await other.ok("artifact import -", text);
    expect(await other.ok("artifact show r-3 --json")).toBe(text);
  });

  it("assembles a batch of one experiment, and names those that there are", async () => {
    const cli = await filled(2);
    const envelope = { worker: "worker-a", startedAtMs: 1100, endedAtMs: 1200, experiment: "second" };
    await cli.ok("artifact import -", lines(draftWire("r-9", { envelope })));
    const assemble = "batch assemble --target policy-r2 --level token --exp";
    expect((await cli.json(`${assemble} second`))[0].batch.totals).toMatchObject({ rows: 1 });
    const { code, err } = await cli.run(`${assemble} secnod`);
    expect([code, err]).toEqual([1, expect.stringContaining("experiment secnod. It has second.")]);
  });

  it("assembles one digest from any order of import and says why two batches differ", async () => {
    const cli = await filled(0);
    await cli.ok("artifact import -", lines(...rollouts(5)));
    const other = await filled(0);
    await other.ok("artifact import -", lines(...rollouts(5).reverse()));
    const assemble = "batch assemble --target policy-r2 --level token";
    const [[a], [b]] = [await cli.json(assemble), await other.json(assemble)];
    expect(a.digest).toBe(b.digest);
    const [c] = await cli.json(`${assemble} --seed 1 --artifact r-1 r-2`);
    const words = await cli.ok(`batch diff ${a.digest} ${c.digest}`);
    expect(words).toMatch(/why they differ:\n.*artifacts: 3 only in the first/);
    expect(words).toContain("seed: 0 against 1");
    expect(await cli.ok(`batch diff ${a.digest} ${a.digest}`)).toBe("both names are of the same batch\n");
    expect((await cli.json("batch show")).length).toBe(2);
  });

  it("selects one family and level, and refuses a mix of families", async () => {
    const cli = await filled(0);
    const mixed = draftWire("r-9", { streams: [...(draftWire("x").streams as object[]), stepWire()] });
    const router = { ...(revisionWire("router-r1") as object), family: "router" };
    await cli.ok("artifact import -", lines(router, mixed));
    const [made] = await cli.json(
      "batch assemble --target router-r1 --level step --advantage none --family router",
    );
    expect(made.ledger.reasons).toMatchObject([{ reason: "other-level", streams: 1 }]);
    const refused = await cli.run("batch assemble --target router-r1 --level token");
    expect(refused).toMatchObject({ code: 1, out: "" });
    expect(refused.err).toContain("[policy-family-mismatch]");
    expect((await cli.json("batch show")).length).toBe(1);
  });

  it("filters and limits the list", async () => {
    const cli = await filled(0);
    const provider = { kind: "failed", owner: "provider", message: "503" };
    const variants = [
      draftWire("r-1", { group: "g-1" }),
      draftWire("r-2", { group: "g-2", ending: provider }),
      draftWire("r-3", { group: "g-2", task: { id: "other" } }),
    ];
    await cli.ok("artifact import -", lines(...variants));
    const ids = async (flags: string) => (await cli.json(`artifact ls ${flags}`)).map((row) => row.rolloutId);
    expect(await ids("--ending failed")).toEqual(["r-2"]);
    expect(await ids("--ending failed-provider --group g-2")).toEqual(["r-2"]);
    expect(await ids("--task other")).toEqual(["r-3"]);
    expect(await ids("--family router --limit 5")).toEqual([]);
    expect(await ids("--limit 2")).toEqual(["r-1", "r-2"]);
    expect(await cli.ok("artifact ls --group g-1")).toMatch(/^ROLLOUT .*\nr-1 /);
  });

  it("lists the candidates of an ambiguous name and says what to do about an unknown one", async () => {
    const cli = await filled(0);
    await cli.ok("artifact import -", lines(draftWire("twin"), draftWire("twin", { seed: "8" })));
    const ambiguous = await cli.run("artifact show twin --json");
    expect(JSON.parse(ambiguous.err).error).toMatchObject({
      code: "ambiguous-name",
      fields: { candidates: { length: 2 } },
    });
    expect(await cli.run("artifact show nobody")).toMatchObject({
      code: 1,
      err: expect.stringContaining("artifact ls"),
    });
    const known = "The book has policy-r1 of family train.decoder, policy-r2 of family train.decoder.";
    expect((await cli.run("batch assemble --target nobody --level token")).err).toContain(known);
    expect(await cli.run("batch assemble --level token")).toMatchObject({
      code: 2,
      err: expect.stringContaining(`'--target <revision>' not specified. ${known}`),
    });
  });

  it("shows a rollout by the beginning of its id, and erases none by it", async () => {
    const cli = await filled(0);
    expect((await cli.run("artifact ls")).err).toMatch(
      /rollbook gateway.*rollbook launch.*rollbook artifact import/,
    );
    await cli.ok("artifact import -", lines(draftWire("r-4e64aa"), draftWire("r-4e65bb", { seed: "8" })));
    expect(await cli.ok("artifact show r-4e64 --json")).toBe(await cli.ok("artifact show r-4e64aa --json"));
    expect(await cli.ok("artifact show r-4e64")).toContain("r-4e64aa");
    expect((await cli.run("artifact show r-4e6")).err).toMatch(
      /may be .*r-4e64aa.*r-4e65bb.*Give more of it/,
    );
    expect(await cli.ok("cat r-4e64")).toBe(await cli.ok("cat r-4e64aa"));
    expect(await cli.ok("verify r-4e64")).toContain("r-4e64aa");
    for (const words of ["cat r-4e6", "verify r-4e6", "artifact verify r-4e6"])
      expect((await cli.run(words)).err).toMatch(/may be .*r-4e64aa.*r-4e65bb/);
    expect((await cli.run("feedback r-4e64 --name good --value 1")).code).not.toBe(0);
    expect((await cli.run("artifact erase r-4e64 --reason mistake")).code).not.toBe(0);
    expect(await cli.json("artifact ls")).toHaveLength(2);
  });
});

describe("housekeeping", () => {
  it("gc removes what nothing refers to, and only that", async () => {
    const cli = await filled();
    await cli.ok("batch assemble --target policy-r2 --level token");
    const { openBook } = await import("../../src/store/index.ts");
    const book = await openBook(cli.book, { clock: { nowMs: () => 0 } });
    book.put("rollbook.column.f32", new Uint8Array(400));
    await book.close();
    const before = await cli.ok("artifact show r-1 --json");
    expect((await cli.json("gc --dry-run"))[0]).toMatchObject({ blobsRemoved: 1, dryRun: true });
    expect((await cli.json("gc"))[0]).toMatchObject({ blobsRemoved: 1, dryRun: false });
    expect(await cli.ok("gc")).toContain("0 blobs and 0 copies removed");
    expect(await cli.ok("artifact show r-1 --json")).toBe(before);
    expect(await cli.ok("verify")).toContain("catalog: agrees with the book");
    expect(await new Cli().run("gc")).toMatchObject({
      code: 1,
      err: expect.stringContaining("rollbook init"),
    });
  });

  it("doctor says what is there, and schema prints what a JSON reader needs", async () => {
    const cli = await filled(1);
    const findings = await cli.json("doctor");
    expect(findings.map(({ check }) => check)).toEqual([
      "node",
      "sqlite",
      "book",
      "use",
      "disk",
      "key",
      "bwrap",
      "docker",
      "python3",
    ]);
    expect(findings.slice(0, 6).every(({ state }) => state === "ok")).toBe(true);
    const kinds = (await cli.json("schema")).map(({ kind }) => kind);
    expect(kinds).toContain("rollbook.trainer-batch.v1");
    for (const kind of kinds)
      expect(JSON.parse(await cli.ok(`schema ${kind}`))).toMatchObject({ title: kind, type: "object" });
    expect(await cli.json("schema rollout")).toEqual([JSON.parse(await cli.ok("schema rollout"))]);
    expect(await cli.ok("schema rollout")).toBe(await cli.ok("schema rollbook.rollout.v1"));
    expect(await cli.run("schema nothing")).toMatchObject({ code: 2 });
    expect((await cli.run("schema rolout")).err).toContain("Did you mean rollout?");
  });
});

describe("keys", () => {
  it("are private, never overwritten unasked, and trusted when listed", async () => {
    const cli = await filled(2);
    const keyFile = join(cli.home, "key.pem");
    expect(statSync(keyFile).mode & 0o777).toBe(0o600);
    const [{ publicKey: old }] = await cli.json("keys show");
    expect(await cli.run("keys new")).toMatchObject({
      ...{ code: 0, out: `${old}\n` },
      err: expect.stringContaining("--force"),
    });
    await cli.ok("keys new --force");
    const [shown] = await cli.json("keys show");
    expect(shown.publicKey).not.toBe(old);
    expect(shown.trusted).toEqual([{ key: old, name: "former-key" }]);
    await cli.ok("verify --require-trusted");
    expect(readdirSync(cli.book).sort()).not.toContain("key.pem");
    const stranger = new Cli();
    const report = await stranger.run(["verify", "--require-trusted", "--book", cli.book]);
    expect(report).toMatchObject({ code: 1, out: expect.stringContaining("not trusted") });
    await stranger.ok(["keys", "trust", old, "friend"]);
    expect(await stranger.ok(["verify", "--require-trusted", "--book", cli.book])).toContain(
      "trusted (friend)",
    );
    expect(await stranger.ok(["keys", "trust", old, "friend"])).toContain("already");
    expect(await stranger.run("keys trust ed25519:short")).toMatchObject({ code: 2 });
    // 43 base64url characters hold 258 bits. The two spare bits must be zero, or no signature ever matches the key.
    expect(await stranger.run(`keys trust ed25519:${"A".repeat(42)}B`)).toMatchObject({ code: 2 });
  });

  it("that cannot be read are named, and replaced when asked", async () => {
    const cli = await filled(2);
    writeFileSync(join(cli.home, "key.pem"), "no key");
    expect(await cli.run("keys show")).toMatchObject({ code: 1, err: expect.stringContaining("key.pem") });
    expect(await cli.run("keys new")).toMatchObject({ code: 1, err: expect.stringContaining("--force") });
    await cli.ok("keys new --force");
    await cli.ok("keys show");
  });
});

describe("usage", () => {
  it("unknown commands and flags are errors with the nearest name, exit 2", async () => {
    const cli = new Cli();
    expect(await cli.run("verfy")).toMatchObject({
      code: 2,
      err: expect.stringContaining("Did you mean verify?"),
    });
    for (const words of ["explian", "explian r-1.0", "explian --help", "help explian"])
      expect(await cli.run(`route ${words}`)).toMatchObject({
        ...{ code: 2, out: "" },
        err: expect.stringContaining("unknown command 'explian'. Did you mean explain?"),
      });
    for (const words of ["route why --help", "help route why", "why --help"])
      expect(await cli.run(words)).toMatchObject({
        ...{ code: 2, out: "" },
        err: expect.stringContaining("unknown command 'why'"),
      });
    expect((await cli.run("route why")).err).toContain(
      "'why'. There are: ask, explain, rollbacks. See `rollbook route --help`.",
    );
    expect(await cli.run("route help explain")).toMatchObject({ code: 0, err: "" });
    expect(await cli.run("verify --requir-trusted")).toMatchObject({
      code: 2,
      err: expect.stringContaining("--require-trusted"),
    });
    expect(await cli.run("artifact")).toMatchObject({
      code: 2,
      out: "",
      err: expect.stringContaining("Usage: rollbook artifact"),
    });
    expect(await cli.run("batch assemble --level token")).toMatchObject({ code: 2 });
    expect(await cli.run("batch assemble --target x --level word")).toMatchObject({ code: 2 });
    expect(await cli.run("batch assemble --target x --level token --seed -1")).toMatchObject({ code: 2 });
    expect(await cli.run("verify a b")).toMatchObject({ code: 2 });
    const json = await cli.run("artifact ls --limit many --json");
    expect(JSON.parse(json.err).error.code).toBe("wrong-usage");
    expect(json.out).toBe("");
  });

  it("a directory that is no book is an error with a remedy, and nothing is created", async () => {
    const cli = new Cli();
    for (const words of ["verify", "artifact ls", "artifact show x", "artifact import -", "batch show"]) {
      expect(await cli.run(words, lines(draftWire("r")))).toMatchObject({
        code: 1,
        err: expect.stringContaining("rollbook init"),
      });
    }
    expect(readdirSync(cli.folder)).toEqual([]);
  });

  it("a stack trace comes on request only", async () => {
    const cli = new Cli();
    expect((await cli.run("verify")).err.trim().split("\n")).toHaveLength(1);
    expect((await cli.run("verify", "", { ROLLBOOK_DEBUG: "1" })).err).toContain("at requireBook");
  });

  it("help and version go to stdout with exit 0", async () => {
    const cli = new Cli();
    expect(await cli.run("--help")).toMatchObject({
      code: 0,
      err: "",
      out: expect.stringContaining("Usage: rollbook"),
    });
    expect(await cli.run("--version")).toMatchObject({ code: 0, out: "0.1.0\n" });
  });
});
