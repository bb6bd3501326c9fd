import { expect, it } from "vitest";
import { manualClock } from "../../src/base/clock.ts";
import { filesHolding } from "../support/book-files.ts";
import { Cli, lines } from "../support/cli.ts";
import { decisionLine } from "../support/decision-lines.ts";

const DAY = 86_400_000;
const NOW = Date.UTC(2026, 5, 30);
const daysAgo = (days: number) => new Date(NOW - days * DAY).toISOString();

/** Decisions of 60, 40 and 1 days ago; the one of 40 days ago taught a policy. */
async function agedBook(): Promise<Cli> {
  const cli = new Cli({ clock: manualClock(NOW) });
  await cli.ok("init");
  await cli.ok("keys new");
  const taught = cli.file("taught.jsonl", lines(decisionLine("taught", { timestamp: daysAgo(40) })));
  await cli.ok(`data import ${taught}`);
  await cli.ok(`train ucb --split all --out ${cli.folder}/p --id r-1`);
  const rows = [
    decisionLine("old", { timestamp: daysAgo(60), prompt: "an old secret" }),
    decisionLine("new", { timestamp: daysAgo(1), prompt: "a new secret" }),
    decisionLine("undated", { timestamp: 0, prompt: "no time" }),
  ];
  await cli.ok(`data import ${cli.file("rows.jsonl", lines(...rows))}`);
  return cli;
}

it("gc --older-than erases old rollouts, keeps those that batches hold, and leaves a book that verifies", async () => {
  const cli = await agedBook();
  const [planned] = await cli.json("gc --older-than 30d --dry-run");
  expect(planned.expired).toMatchObject({
    dryRun: true,
    erased: 1,
    inBatches: 1,
    undated: 1,
    tombstones: [],
  });
  expect(filesHolding(cli.book, "an old secret")).not.toEqual([]);

  const text = await cli.ok("gc --older-than 30d");
  expect(text).toMatch(
    /^1 rollout that ended before 2026-05-31T00:00:00.000Z erased, [\d ]+ bytes\nkept: 1 old rollout/,
  );
  expect(filesHolding(cli.book, "an old secret")).toEqual([]);
  expect(filesHolding(cli.book, "a new secret")).not.toEqual([]);
  const listed = (await cli.json("artifact ls")).map(({ rolloutId }) => rolloutId);
  expect(listed.sort()).toEqual(["new", "taught", "undated"]);
  expect(await cli.ok("verify --require-trusted")).toContain("erased: 1 rollout (old)");
  expect((await cli.json("gc --older-than 30d"))[0].expired).toMatchObject({ erased: 0 });
});

it("gc --older-than with --with-batches erases what batches hold too", async () => {
  const cli = await agedBook();
  expect((await cli.json("gc --older-than 30d --with-batches"))[0].expired).toMatchObject({
    erased: 2,
    inBatches: 0,
  });
  expect(await cli.ok("verify")).toContain("erased: 2 rollouts");
});

it("an age that is none, or --with-batches alone, is wrong usage", async () => {
  const cli = new Cli();
  await cli.ok("init");
  expect((await cli.run("gc --older-than soon")).code).toBe(2);
  expect((await cli.run("gc --with-batches")).code).toBe(2);
});
