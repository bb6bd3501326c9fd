import { cpSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { Assignment, rolloutIdFor, type Sealed, sampleSeed, seal, Task } from "../../src/contract/index.ts";
import { filesHolding } from "../support/book-files.ts";
import { Cli, lines } from "../support/cli.ts";
import { decisionLine } from "../support/decision-lines.ts";
import { draftWire, makeRevision } from "../support/shelf.ts";

const SECRET = "my name is Ada Example";
const erase = (cli: Cli, ...words: string[]) =>
  cli.run(["artifact", "erase", ...words, "--reason", "request 17", "--yes", "--json"]);
const wireOf = ({ bytes }: Sealed<unknown>) => JSON.parse(Buffer.from(bytes).toString());

async function bookOfDecisions(...rows: object[]): Promise<Cli> {
  const cli = new Cli();
  await cli.ok("init");
  await cli.ok("keys new");
  await cli.ok(`data import ${cli.file("log.jsonl", lines(...rows))}`);
  await cli.ok("artifact ls"); // the catalog now lists the tasks
  return cli;
}

describe("erasing imported decisions", () => {
  it("removes the prompt with the decision, from every file of the book", async () => {
    const cli = await bookOfDecisions(
      decisionLine("d1", { prompt: SECRET }),
      decisionLine("d2", { prompt: "a public question" }),
    );
    expect(filesHolding(cli.book, SECRET).some((path) => path.includes("catalog.db"))).toBe(true);
    const { code, out, err } = await erase(cli, "d1");
    expect([code, err]).toEqual([0, ""]);
    const report = JSON.parse(out);
    expect(report.tasksKept).toEqual([]);
    expect(report.blobs.map(({ kind }: { kind: string }) => kind)).toContain(Task.kind);
    expect(filesHolding(cli.book, SECRET)).toEqual([]);
    expect(filesHolding(cli.book, "a public question")).not.toEqual([]);
    expect((await cli.json("verify --require-trusted"))[0]).toMatchObject({ ok: true, catalog: [] });
    await cli.ok(`data export --out ${join(cli.folder, "out.jsonl")}`);
  });

  it("keeps a prompt that another decision needs, says so, and removes it with the last", async () => {
    const shared = { task: "t", prompt: SECRET };
    const cli = await bookOfDecisions(decisionLine("d1", shared), decisionLine("d2", shared));
    const [kept] = await cli.json("artifact show d2");
    const first = await erase(cli, "d1");
    expect(first.code).toBe(0);
    expect(JSON.parse(first.out).tasksKept).toEqual([kept.task.digest]);
    expect(first.err).toMatch(/kept 1 task with prompts, because other records .*: [0-9a-f]{12}\n/);
    expect(filesHolding(cli.book, SECRET)).not.toEqual([]);
    await cli.ok("verify");
    expect(JSON.parse((await erase(cli, "d2")).out).tasksKept).toEqual([]);
    expect(filesHolding(cli.book, SECRET)).toEqual([]);
    await cli.ok("verify");
  });
});

const task = seal(Task, {
  id: "t-1" as never,
  environment: "env.weather@1" as never,
  payload: {},
  prompt: SECRET,
  dataSource: "synthetic",
});
const assignmentOf = (id: string) =>
  seal(Assignment, {
    id: id as never,
    environment: "env.weather@1" as never,
    task: { id: task.record.id, digest: task.digest },
    samples: 2,
    seed: 1n,
  });
const assigned = ({ digest }: Sealed<Assignment>, sample: number) => ({
  ...draftWire(rolloutIdFor(digest, sample), {
    task: { id: "t-1", digest: task.digest },
    assignment: { digest, sample },
    seed: String(sampleSeed(digest, sample)),
  }),
  group: undefined,
});

/** A book of signed tasks and assignments, each import in its own pack, with two rollouts of each assignment. */
async function bookOfAssignments(...assignments: Sealed<Assignment>[]): Promise<Cli> {
  const cli = new Cli();
  await cli.ok("init");
  await cli.ok("keys new");
  await cli.ok("artifact import -", lines(wireOf(makeRevision("policy-r1"))));
  await cli.ok("artifact import -", lines(wireOf(task)));
  for (const assignment of assignments) {
    await cli.ok("artifact import -", lines(wireOf(assignment)));
    for (const sample of [0, 1]) await cli.ok("artifact import -", lines(assigned(assignment, sample)));
  }
  return cli;
}

describe("erasing rollouts of assignments", () => {
  const [first, second] = [assignmentOf("a-1"), assignmentOf("a-2")];
  const ids = ({ digest }: Sealed<Assignment>) => [rolloutIdFor(digest, 0), rolloutIdFor(digest, 1)];

  it("removes the task with the last rollout of the last assignment, and keeps the assignments", async () => {
    const cli = await bookOfAssignments(first, second);
    expect(JSON.parse((await erase(cli, ...ids(first))).out).tasksKept).toEqual([task.digest]);
    expect(JSON.parse((await erase(cli, ids(second)[0]!)).out).tasksKept).toEqual([task.digest]);
    expect(JSON.parse((await erase(cli, ids(second)[1]!)).out).tasksKept).toEqual([]);
    expect(filesHolding(cli.book, SECRET)).toEqual([]);
    expect((await cli.json("verify --require-trusted"))[0]).toMatchObject({ ok: true, catalog: [] });
    await cli.ok(`verify ${first.digest}`);
  });

  it("keeps a task that an assignment without rollouts still needs", async () => {
    const cli = await bookOfAssignments(first);
    await cli.ok("artifact import -", lines(wireOf(second)));
    expect(JSON.parse((await erase(cli, ...ids(first))).out).tasksKept).toEqual([task.digest]);
    expect(filesHolding(cli.book, SECRET)).not.toEqual([]);
  });

  it("removes the task when an erasure that was cut short is run again, whatever was gone by then", async () => {
    const done = await bookOfAssignments(first);
    const before = join(done.folder, "before");
    cpSync(done.book, before, { recursive: true });
    expect((await erase(done, ...ids(first))).code).toBe(0);
    const packsOf = (book: string) => readdirSync(join(book, "packs"));
    const doomed = packsOf(before).filter((name) => !packsOf(done.book).includes(name));
    const held = filesHolding(before, SECRET).filter((path) => path.endsWith(".pack"));
    expect(held.length).toBeGreaterThan(0);
    for (const names of [doomed, doomed.filter((name) => held.some((path) => path.endsWith(name)))]) {
      const cut = new Cli();
      cpSync(done.book, cut.book, { recursive: true });
      cpSync(done.home, cut.home, { recursive: true });
      for (const name of names) cpSync(join(before, "packs", name), join(cut.book, "packs", name));
      rmSync(join(cut.book, "catalog.db"), { force: true });
      expect(filesHolding(cut.book, SECRET)).not.toEqual([]);
      expect((await erase(cut, ...ids(first))).code).toBe(0);
      expect(filesHolding(cut.book, SECRET)).toEqual([]);
      await cut.ok("verify --require-trusted");
    }
  });
});
