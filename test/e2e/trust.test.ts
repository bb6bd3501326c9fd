import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { systemClock } from "../../src/base/clock.ts";
import { canonicalize, type Json, parseId } from "../../src/base/index.ts";
import { readTransitions } from "../../src/book/loop/index.ts";
import { useBook } from "../../src/book/open/index.ts";
import {
  encodeWire,
  LoopEnvelope,
  PolicyRevision,
  QuarantineRelease,
  seal,
  TrainerBatch,
  Verdict,
} from "../../src/contract/index.ts";
import { openBook } from "../../src/store/index.ts";
import { Cli, lines } from "../support/cli.ts";
import { SMALL, writeLoop } from "../support/loop-world.ts";
import { draftWire, makeRevision, weightsOf } from "../support/shelf.ts";

const REVISIONS = [0, 8].map((n) =>
  encodeWire(PolicyRevision, makeRevision(`r${n}`, { number: BigInt(n) }).record),
);
const ROLLOUTS = [8, 4].map((n) =>
  draftWire(`from-r${n}`, { group: "g" }, { revision: { id: `r${n}`, digest: weightsOf(`r${n}`) } }),
);

/** A signed book with one accepted and one quarantined rollout. */
async function judgedBook(): Promise<Cli> {
  const cli = new Cli();
  await cli.ok("keys new");
  await cli.ok("init");
  const revisions = [...REVISIONS, encodeWire(PolicyRevision, makeRevision("r4", { number: 4n }).record)];
  await cli.ok(`artifact import ${cli.file("all.jsonl", lines(...revisions, ...ROLLOUTS))}`);
  await cli.ok("artifact admit --target r8 --freshness default");
  return cli;
}

/** Adds a changed, unsigned copy of every record of a kind, in its own pack. Returns the digests of the copies. */
async function forgeUnsigned(
  cli: Cli,
  type: { kind: string },
  change: (record: Record<string, unknown>) => Record<string, unknown>,
  root = cli.book,
): Promise<string[]> {
  const book = await openBook(root, { clock: systemClock });
  const forged: string[] = [];
  const found: Record<string, unknown>[] = [];
  for await (const item of book.scan())
    if (item.type === "blob" && item.kind === type.kind)
      found.push(JSON.parse(Buffer.from(item.bytes).toString()));
  for (const record of found)
    forged.push(book.put(type.kind, Buffer.from(canonicalize(change(record) as Json))));
  await book.close();
  return forged;
}

/** An attack that needs no key: another pack with an unsigned release, valid in every other way. */
async function releaseUnsigned(cli: Cli): Promise<void> {
  const book = await openBook(cli.book, { clock: systemClock });
  for await (const item of book.scan()) {
    if (item.type !== "blob" || item.kind !== Verdict.kind) continue;
    const { disposition, subject } = JSON.parse(Buffer.from(item.bytes).toString());
    if (disposition !== "quarantined") continue;
    const said = { by: parseId("mallory"), reason: "a rare task", atMs: 2000 };
    const release = seal(QuarantineRelease, { subject, verdict: item.digest, ...said });
    book.put(release.kind, release.bytes);
  }
  await book.close();
}

const trustOf = async (cli: Cli) => (await cli.json("verify"))[0].trust;

describe("a release that nobody signed", () => {
  it("is counted by verify, and fails --require-trusted", async () => {
    const cli = await judgedBook();
    await cli.ok("verify --require-trusted");
    await releaseUnsigned(cli);
    expect((await trustOf(cli)).roots[QuarantineRelease.kind]).toEqual({ count: 1, signed: 0, trusted: 0 });
    expect(await cli.ok("verify")).toContain("NOT by a trusted key: 1 of 1 release");
    expect(await cli.run("verify --require-trusted")).toMatchObject({
      code: 1,
      err: expect.stringMatching(
        /1 record without a signature of a trusted key \(1 release\).*\[not-trusted\]/s,
      ),
    });
  });

  it("lets a rollout into a batch, and into none where trust is required", async () => {
    const cli = await judgedBook();
    const assemble = "batch assemble --target r8 --level token --freshness none";
    expect((await cli.json(`${assemble} --require-trusted`))[0].batch.totals.rows).toBe(1);
    await releaseUnsigned(cli);
    const refused = { code: 1, err: expect.stringContaining("rollbook.release.v1") };
    expect(await cli.run(`${assemble} --require-trusted`)).toMatchObject(refused);
    expect(await cli.run(assemble, "", { ROLLBOOK_REQUIRE_TRUSTED: "1" })).toMatchObject(refused);
    expect((await cli.json(assemble))[0].batch.totals.rows).toBe(2);
  });

  it("counts where its signer is trusted, and not where the signer is somebody else", async () => {
    const cli = await judgedBook();
    await cli.ok(["artifact", "release", "from-r4", "--reason", "a rare task"]);
    const assemble = "batch assemble --target r8 --level token --freshness none --require-trusted";
    expect((await cli.json(assemble))[0].batch.totals.rows).toBe(2);
    const stranger = { ROLLBOOK_HOME: join(cli.folder, "stranger") };
    expect((await cli.run("keys new", "", stranger)).code).toBe(0);
    expect(await cli.run(assemble, "", stranger)).toMatchObject({
      code: 1,
      err: expect.stringContaining("[not-trusted]"),
    });
  });
});

const required = { ROLLBOOK_REQUIRE_TRUSTED: "1" };
const notTrusted = (kind: string) => ({
  ...{ code: 1, err: expect.stringMatching(new RegExp(`${kind}.*\\[not-trusted\\]`, "s")) },
});

describe("records without a signature that decide what is learned", () => {
  it("are refused where trust is required: a batch that is exported", async () => {
    const cli = await judgedBook();
    const [{ digest }] = await cli.json("batch assemble --target r8 --level token --freshness none");
    const [forged] = await forgeUnsigned(cli, TrainerBatch, (batch) => ({ ...batch, seed: "77" }));
    const out = (name: string) => `--format jsonl --out ${join(cli.folder, name)}`;
    expect((await cli.run(`batch export ${digest} ${out("own")}`, "", required)).code).toBe(0);
    expect((await cli.run(`batch export ${forged} ${out("any")}`)).code).toBe(0);
    const refused = await cli.run(`batch export ${forged} ${out("forged")}`, "", required);
    expect(refused).toMatchObject(notTrusted(TrainerBatch.kind));
  });

  it("are refused where trust is required: revisions that rollouts are admitted by", async () => {
    const cli = await judgedBook();
    const admit = "artifact admit --target r8 --freshness default";
    expect((await cli.run(admit, "", required)).code).toBe(0);
    await forgeUnsigned(cli, PolicyRevision, (revision) => ({ ...revision, id: "r9", number: "900" }));
    expect(await cli.run(admit, "", required)).toMatchObject(notTrusted(PolicyRevision.kind));
    const byForged = admit.replace("r8", "r9");
    expect((await cli.run(byForged, "", required)).code).toBe(1);
  });
});

describe("a loop with a key", () => {
  it("signs every record that stands by itself: rollouts, receipts, increments, revisions, verdicts, states", async () => {
    const cli = new Cli({ clock: systemClock });
    await cli.ok("keys new");
    await cli.ok(`run start --config ${writeLoop(cli.folder, SMALL)}`);
    const { roots } = await trustOf(cli);
    const unsigned = Object.entries<{ count: number; trusted: number }>(roots).filter(
      ([, { count, trusted }]) => trusted < count,
    );
    expect(unsigned).toEqual([]);
    expect(Object.keys(roots).map((kind) => kind.slice(9, -3))).toEqual(
      expect.arrayContaining([
        "gate-verdict",
        "policy-revision",
        "loop-envelope",
        "rollout-envelope",
        "receipt",
      ]),
    );
    await cli.ok("verify --require-trusted");
    // Where trust is required, a run is not continued from an unsigned state.
    const [{ publicKey }] = await cli.json("keys show");
    const readStates = (keys?: ReadonlySet<string>) =>
      useBook(cli.book, { mode: "read", required: keys }, (book) => readTransitions(book, parseId("loop")));
    const states = await readStates(new Set([publicKey]));
    expect(states.length).toBeGreaterThan(3);
    await forgeUnsigned(cli, LoopEnvelope, (envelope) => ({ ...envelope, atMs: 1 }));
    expect(await readStates()).toHaveLength(states.length);
    await expect(readStates(new Set([publicKey]))).rejects.toMatchObject({ code: "not-trusted" });
  }, 60_000);
});
