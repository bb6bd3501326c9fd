import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { systemClock } from "../../src/base/clock.ts";
import { parseId } from "../../src/base/index.ts";
import { encodeWire, PolicyRevision, QuarantineRelease, seal, Verdict } from "../../src/contract/index.ts";
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

/** A book with one accepted and one quarantined rollout, all of it signed. */
async function judgedBook(): Promise<Cli> {
  const cli = new Cli();
  await cli.ok("keys new");
  await cli.ok("init");
  const revisions = [...REVISIONS, encodeWire(PolicyRevision, makeRevision("r4", { number: 4n }).record)];
  await cli.ok(`artifact import ${cli.file("all.jsonl", lines(...revisions, ...ROLLOUTS))}`);
  await cli.ok("artifact admit --target r8 --freshness default");
  return cli;
}

/** What somebody without a key can do: one more pack, with a release in it that fits in every other way. */
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
  }, 60_000);
});
