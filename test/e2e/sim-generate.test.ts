import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { readTaskFolder, readTasks } from "../../src/collect/sim/prove/task-files.ts";
import { Cli } from "../support/cli.ts";

describe("rollbook sim generate", () => {
  it("writes proved tasks, the same bytes for the same seed, and never over others", async () => {
    const cli = new Cli();
    const generate = (out: string, more = "") =>
      `sim generate --count 7 --seed 5 --engine quickjs --out ${cli.folder}/${out}${more}`;
    const said = await cli.run(generate("first"));
    expect([said.code, said.err]).toEqual([
      0,
      "the quickjs engine runs JavaScript only: without py-bugfix, py-implement, sql-query\n",
    ]);
    expect(said.out).toMatch(/^FAMILY +D1 +D2 +D3 +D4 +D5 +TASKS +REPLACED\njs-bugfix +1 +0/);
    expect(said.out).toContain("7 tasks in");
    expect(said.out).toContain(
      "each checked twice in quickjs: its reference solution passes, its wrong solutions fail",
    );
    await cli.ok(generate("second", " --workers 1"));
    for (const name of ["tasks.jsonl", "solutions.jsonl", "tasks.meta.json"])
      expect(readFileSync(join(cli.folder, "first", name), "utf8")).toBe(
        readFileSync(join(cli.folder, "second", name), "utf8"),
      );
    expect(readTasks(join(cli.folder, "first"))).toHaveLength(7);
    const again = await cli.run(generate("first"));
    expect([again.code, again.err]).toEqual([1, expect.stringMatching(/already exists.*--out/)]);
  });

  it("draws named families and difficulties without proof, and says so as JSON", async () => {
    const cli = new Cli();
    const [meta] = await cli.json(
      `sim generate --count 6 --families py-bugfix,word-problems --difficulty 2-4 --no-prove --out ${cli.folder}/few`,
    );
    expect(meta).toMatchObject({
      engine: null,
      tasks: 6,
      seed: "0",
      counts: { "py-bugfix": { 2: 1, 3: 1, 4: 1 }, "word-problems": { 2: 1, 3: 1, 4: 1 } },
    });
    expect(readTaskFolder(join(cli.folder, "few")).tasks).toHaveLength(6);
    expect(
      (await cli.run(`sim run --tasks ${cli.folder}/few --agent reference --engine quickjs`)).err,
    ).toContain("--no-prove");
  });

  it("makes rows that launch takes as they are: the agent gets the visible part and nothing else", async () => {
    const cli = new Cli();
    await cli.ok(`sim generate --count 2 --no-prove --out ${cli.folder}/tasks`);
    cli.file(
      "agent.mjs",
      'export default (payload) => { if (Object.keys(payload).sort().join() !== "check,editable,files,statement") throw new Error(); };\n',
    );
    const flags = `--tasks ${cli.folder}/tasks/tasks.jsonl --agent ${cli.folder}/agent.mjs`;
    expect(await cli.ok(`launch ${flags} --environment sim.js-bugfix@1`)).toContain("2 of 2 rollouts sealed");
    expect((await cli.json("artifact ls")).map(({ ending }) => ending)).toEqual(["terminal", "terminal"]);
  });

  it.each([
    ["--families js-bugfx", 2, /js-bugfx.*js-bugfix/],
    ["--families py-bugfix --engine quickjs", 1, /does not run py-bugfix/],
    ["--difficulty 6", 2, /from 1 to 5/],
    ["--difficulty 4-2", 2, /from 1 to 5/],
    ["--count 0", 2, /at least 1/],
    ["--seed -1", 2, /from 0 to 2\^64/],
    ["--engine host", 2, /host/],
    ["--familes js-bugfix", 2, /--families/],
  ])("refuses %s and writes nothing", async (flags, code, message) => {
    const cli = new Cli();
    const outcome = await cli.run(`sim generate --out ${cli.folder}/none ${flags}`);
    expect([outcome.code, outcome.err]).toEqual([code, expect.stringMatching(message)]);
    expect(existsSync(join(cli.folder, "none"))).toBe(false);
  });
});
