/** The library and the command line are equivalent: each reads what the other writes, and digests agree. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { encodeWire, PolicyRevision } from "../../src/contract/index.ts";
import {
  addFeedback,
  admitRollouts,
  admittedRollouts,
  collectGarbage,
  cutBatch,
  exportBatch,
  extendReplay,
  importRollouts,
  listRollouts,
  openBook,
  readBatch,
  releaseRollout,
  showRollout,
  validateRollouts,
  verifyBook,
  verifyNamed,
  writeReplay,
} from "../../src/index.ts";
import { Cli, lines } from "../support/cli.ts";
import { libraryHome } from "../support/library-home.ts";
import { draftWire, makeRevision, weightsOf } from "../support/shelf.ts";

const revisions = [1n, 2n, 3n, 4n, 5n, 6n].map((number) =>
  encodeWire(PolicyRevision, makeRevision(`policy-r${number}`, { number }).record),
);
const drafts = [
  draftWire("fresh"),
  draftWire("late", { seed: "8" }, { rewards: undefined }),
  draftWire("stale", { seed: "9" }, { revision: { id: "policy-r1", digest: weightsOf("policy-r1") } }),
];
const target = "policy-r1";

describe("the front door", () => {
  it("cuts the batch that the commands cut, from the same file and the same feedback", async () => {
    const { path } = libraryHome();
    const cli = new Cli();
    const file = cli.file("r.jsonl", lines(...revisions, ...drafts));
    await cli.ok("init");
    await cli.ok(`artifact import ${file}`);
    await cli.ok("feedback late --name solved --value 0.5");
    const [known] = await cli.json(`batch assemble --target ${target} --level token --feedback solved`);

    const book = await openBook(path("runs"), { create: true, clock: cli.clock });
    await importRollouts(book, file);
    expect(await addFeedback(book, { rollout: "late", name: "solved", value: 0.5 })).toMatchObject({
      added: true,
    });
    expect(await addFeedback(book, { rollout: "late", name: "solved", value: 0.5 })).toMatchObject({
      added: false,
    });
    const batch = await cutBatch(book, { target, level: "token", feedback: "solved" });
    expect(batch.digest).toBe(known.digest);

    const rewards: Record<string, number> = {};
    for await (const row of (await readBatch(book, batch.digest.slice(7, 15))).rows())
      rewards[row.rolloutId] = row.reward;
    expect(rewards).toMatchObject({ late: 0.5 });
    const out = join(path("batch.jsonl"));
    expect(await exportBatch(book, batch.digest, { format: "jsonl", out })).toMatchObject({ rows: 3, out });
    expect(readFileSync(out, "utf8").trim().split("\n")).toHaveLength(4);
    expect((await verifyBook(book)).report.problems).toEqual([]);
    const [verified] = await verifyNamed(book, batch.digest);
    expect(verified).toMatchObject({ reached: { rollouts: 3 } });
    await book.close();
  });

  it("judges, releases, lists and shows, and the commands see it", async () => {
    const { path } = libraryHome();
    const cli = new Cli();
    const book = await openBook(cli.book, { create: true });
    await importRollouts(book, [...revisions, ...drafts] as never);
    const judged = await admitRollouts(book, { target: "policy-r5" });
    expect(judged.map(({ rolloutId, disposition }) => `${rolloutId} ${disposition}`)).toEqual([
      "fresh quarantined",
      "late quarantined",
      "stale quarantined",
    ]);
    const { rolloutId, releases } = await releaseRollout(book, "fresh", { reason: "a rare task" });
    expect([rolloutId, releases.length]).toEqual(["fresh", 1]);
    await expect(releaseRollout(book, "fresh", { reason: "again" })).rejects.toMatchObject({
      code: "not-quarantined",
    });
    const { rows: admitted } = await admittedRollouts(book, { level: "token", freshness: "none" });
    expect(admitted.map((each) => each.rolloutId)).toEqual(["fresh"]);
    const root = path("replay");
    await writeReplay(book, { root });
    expect((await extendReplay(book, { root })).admitted.map(({ rows }) => rows.length)).toEqual([1]);
    expect((await validateRollouts(book, { validator: "second" })).length).toBe(3);
    expect(await validateRollouts(book, { validator: "second" })).toEqual([]);
    expect((await showRollout(book, "fresh")).about.map(({ kind }) => kind)).toEqual(
      expect.arrayContaining(["rollbook.verdict.v1", "rollbook.release.v1"]),
    );
    const rows = await listRollouts(book, { ending: "terminal", limit: 2 });
    expect(rows.map((row) => row.rolloutId)).toEqual(["fresh", "late"]);
    await book.close();

    expect(await cli.ok("artifact show fresh")).toContain("release      by owner: a rare task");
    expect(await cli.ok(`replay validate ${root}`)).toContain("valid");
    expect(await collectGarbage(cli.book, { dryRun: true })).toMatchObject({ blobsRemoved: 0, orphans: [] });
  });
});
