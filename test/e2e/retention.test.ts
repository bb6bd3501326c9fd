import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { manualClock } from "../../src/base/clock.ts";
import { filesHolding } from "../support/book-files.ts";
import { Cli, lines } from "../support/cli.ts";
import { decisionLine } from "../support/decision-lines.ts";

const DAY = 86_400_000;
const NOW = Date.UTC(2026, 5, 30);
const daysAgo = (days: number) => new Date(NOW - days * DAY).toISOString();

/** Decisions of 60, 40 and 1 days ago, and one without a time. A policy learned from the decision of 40 days ago. */
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

it("gc --older-than keeps a chat log without a time, also one that says how long its call took", async () => {
  const cli = new Cli({ clock: manualClock(NOW) });
  await cli.ok("init");
  const request = { model: "m", messages: [{ role: "user", content: "2 + 2" }] };
  const response = { choices: [{ message: { role: "assistant", content: "4" }, finish_reason: "stop" }] };
  const rows = [
    { id: "bare", request, response },
    { id: "timed", latency_ms: 800, request, response },
    { id: "old", time: daysAgo(60), latency_ms: 800, request, response },
  ];
  await cli.ok(`artifact import ${cli.file("chats.jsonl", lines(...rows))}`);
  expect(await cli.ok("artifact ls")).toMatch(/^timed +- /m);
  expect((await cli.json("gc --older-than 30d"))[0].expired).toMatchObject({ erased: 1, undated: 2 });
  const listed = (await cli.json("artifact ls")).map(({ rolloutId }) => rolloutId);
  expect(listed.sort()).toEqual(["bare", "timed"]);
});

it("gc --older-than finishes an erasure that was killed before the catalog was scrubbed", async () => {
  const cli = await agedBook();
  await cli.ok("artifact ls");
  const catalog = () => readdirSync(cli.book).filter((name) => name.startsWith("catalog.db"));
  const before = catalog().map((name) => [join(cli.book, name), readFileSync(join(cli.book, name))] as const);
  await cli.ok("gc --older-than 30d");
  for (const name of catalog()) rmSync(join(cli.book, name));
  for (const [path, bytes] of before) writeFileSync(path, bytes);
  expect(filesHolding(cli.book, "an old secret")).not.toEqual([]);
  expect((await cli.json("gc --older-than 30d"))[0].expired).toMatchObject({ erased: 0 });
  expect(filesHolding(cli.book, "an old secret")).toEqual([]);
});

it("an erasure removes the cache of embeddings, by age and by name; one that is refused does not", async () => {
  const cli = await agedBook();
  const cache = join(cli.book, "embeddings.db");
  writeFileSync(cache, "vectors");
  await cli.ok("gc --older-than 90d");
  await cli.ok("gc --older-than 30d --dry-run");
  expect((await cli.run("artifact erase taught --reason test --yes")).err).toContain("--with-batches");
  expect(existsSync(cache)).toBe(true);
  await cli.ok("gc --older-than 30d");
  expect(existsSync(cache)).toBe(false);
  writeFileSync(cache, "vectors");
  await cli.ok("artifact erase new --reason test --yes");
  expect(existsSync(cache)).toBe(false);
});

it("gc --older-than names the texts of tasks that stay, because a newer rollout has them too", async () => {
  const cli = new Cli({ clock: manualClock(NOW) });
  await cli.ok("init");
  const shared = { task: "t", prompt: "asked twice" };
  const rows = [60, 1].map((days) => decisionLine(`d-${days}`, { ...shared, timestamp: daysAgo(days) }));
  await cli.ok(`data import ${cli.file("rows.jsonl", lines(...rows))}`);
  const { out, err } = await cli.run("gc --older-than 30d --json");
  expect(JSON.parse(out).expired).toMatchObject({ erased: 1, tasksKept: [expect.any(String)] });
  expect(err).toContain("kept 1 task with prompts");
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
