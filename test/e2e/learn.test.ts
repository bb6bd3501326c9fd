import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { modelsOf } from "../../src/convert/routing-jsonl.ts";
import { policyOf, readCheckpoint } from "../../src/policy/index.ts";
import { Cli } from "../support/cli.ts";
import { behaviour, candidate, decisionWorld, promptOf } from "../support/decision-world.ts";
import { fillDemoBook } from "../support/demo-book.ts";
import { draftWire, stepWire } from "../support/shelf.ts";

/** The decision world as a routing dataset. */
function writeWorld(cli: Cli, count: number): string {
  const file = join(cli.folder, "world.jsonl");
  const lines = decisionWorld(count, 6).rows.map((row) =>
    JSON.stringify({
      schema_version: 1,
      decision_id: row.id,
      session_id: "s",
      task_id: `t-${row.id}`,
      agent_role: "router",
      timestamp: "2026-01-01T00:00:00Z",
      ...modelsOf(["large", "small"], row.candidates[row.chosen]!.id),
      propensity: row.propensity,
      reward: row.reward,
      terminal: true,
      data_source: "synthetic",
      state: { ...row.context, candidates: row.candidates },
    }),
  );
  writeFileSync(file, `${lines.join("\n")}\n`);
  return file;
}

describe("learning on the command line", () => {
  it("imports a dataset, analyses its rewards, trains every algorithm, and the same seed gives the same weights", async () => {
    const cli = new Cli();
    const world = writeWorld(cli, 600);
    const data = join(cli.folder, "routing.jsonl");
    const [imported] = await cli.json(`data import ${world} --out ${data}`);
    expect(imported).toMatchObject({ rows: 600, below_recommended: true, by_source: { synthetic: 600 } });
    const [report] = await cli.json(`reward analyze --data ${data}`);
    expect(report).toMatchObject({ rows: 600, unlabelled: 0, values: "self-normalised" });
    expect(await cli.ok(`reward analyze --data ${data}`)).toContain("always one candidate (self-normalised)");
    for (const words of ["ucb", "linucb --alpha 0.2", "thompson", "thompson --form linear", "bc"]) {
      const out = (name: string) => join(cli.folder, `${words.replaceAll(" ", "")}-${name}`);
      const [first] = await cli.json(`train ${words} --data ${data} --out ${out("a")} --id r1 --seed 3`);
      const [again] = await cli.json(`train ${words} --data ${data} --out ${out("b")} --id r1 --seed 3`);
      expect(again.weights).toBe(first.weights);
      const { answer } = policyOf(readCheckpoint(out("a")));
      const two = [candidate("large"), candidate("small")];
      const { probabilities } = answer({ prompt: promptOf(true, 5), fields: { hard: true } }, two);
      expect(probabilities.reduce((sum, each) => sum + each)).toBeCloseTo(1, 9);
      if (words === "bc") expect(Math.abs(probabilities[0]! - behaviour(true))).toBeLessThan(0.2);
    }
  });

  it("seals a decision log into the book, and what comes out of the book is what went in", async () => {
    const cli = new Cli();
    const world = writeWorld(cli, 40);
    await cli.ok("init");
    const [sealed] = await cli.json(`data import ${world}`);
    expect(sealed).toMatchObject({
      rows: 40,
      labelled: 40,
      with_propensity: 40,
      by_source: { synthetic: 40 },
    });
    await cli.ok(`data import ${world}`); // a second import adds nothing
    const out = join(cli.folder, "out.jsonl");
    await cli.ok(`data export --out ${out}`);
    const read = (file: string) =>
      readFileSync(file, "utf8")
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line));
    const facts = (row: ReturnType<typeof read>[number]) => ({
      chosen: row.model_chosen,
      fallback: row.action_fallback,
      propensity: row.propensity,
      reward: row.reward,
      at: Date.parse(row.timestamp),
      session: row.session_id,
      role: row.agent_role,
      prompt: row.state.prompt,
      hard: row.state.fields.hard,
      price: row.state.candidates.map((one: { features: { price: number } }) => one.features.price),
    });
    const [before, after] = [read(world), read(out)];
    const byId = new Map(after.map((row) => [row.decision_id, facts(row)]));
    expect(after).toHaveLength(40);
    for (const row of before) expect(byId.get(`${row.decision_id}/0/0`)).toEqual(facts(row));
    expect((await cli.run("verify")).code).toBe(0);
  });

  it("keeps the propensity of a log that tells no more, and refuses a log that is neither real nor synthetic", async () => {
    const cli = new Cli();
    const log = join(cli.folder, "log.csv");
    writeFileSync(log, "arm,score,p\n0,1,0.25\n1,,0.75\n");
    const words = `data import ${log} --format csv --map action=arm,reward=score,propensity=p`;
    await cli.ok("init");
    const refused = await cli.run(words);
    expect([refused.code, refused.err]).toEqual([
      1,
      expect.stringMatching(/^error: --data-source is missing: .*Add --data-source real.*\[no-data-source\]/),
    ]);
    expect(refused.err).toContain("Add --data-source real");
    const unnamed = await cli.run(`data import ${log}`);
    expect([unnamed.code, unnamed.err]).toEqual([2, expect.stringContaining("--map model=…")]);
    await cli.ok(`${words} --data-source real`);
    const out = join(cli.folder, "out.jsonl");
    await cli.ok(`data export --out ${out}`);
    const rows = readFileSync(out, "utf8")
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    const kept = rows.map(({ propensity, reward }) => [propensity, reward]);
    expect(kept.sort()).toEqual([
      [0.25, 1],
      [0.75, null],
    ]);
  });

  it("chains revisions by --parent, and overwrites nothing", async () => {
    const cli = new Cli();
    const data = writeWorld(cli, 50);
    const [one, two] = [join(cli.folder, "one"), join(cli.folder, "two")];
    await cli.ok(`train ucb --data ${data} --out ${one} --id r1`);
    await cli.ok(`train ucb --data ${data} --out ${two} --id r2 --parent ${one}`);
    expect(readCheckpoint(two).revision.record).toMatchObject({ number: 2n, parent: { id: "r1" } });
    expect((await cli.run(`train ucb --data ${data} --out ${one} --id r3`)).code).toBe(1);
  });

  it("exports the decisions of a book with their sidecar, by filter, and trains from the book into the book", async () => {
    const cli = new Cli();
    await fillDemoBook(cli.book);
    const out = join(cli.folder, "routing.jsonl");
    const { code, err, out: text } = await cli.run(`data export --out ${out} --feedback accepted --json`);
    expect([code, err]).toEqual([0, expect.stringContaining("Record about 1000")]);
    const meta = JSON.parse(readFileSync(`${out}.meta.json`, "utf8"));
    expect(JSON.parse(text)).toMatchObject(meta);
    expect(meta).toMatchObject({ below_recommended: true, filters: { feedback: "accepted" } });
    expect(meta.rows).toBe(meta.by_source.synthetic);
    const rows = readFileSync(out, "utf8")
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(rows[0]).toMatchObject({ decision_id: "r-0001/1/0", agent_role: expect.any(String) });
    expect(rows[0].state.prompt).toMatch(/\d \+ \d = \?/);
    expect(rows.find((row) => row.decision_id === "r-0008/1/0")).toMatchObject({
      reward: 1,
      reward_version: "feedback:accepted",
    });
    const real = join(cli.folder, "real.jsonl");
    const none = await cli.run(`data export --out ${real} --data-source real`);
    expect([none.code, none.err]).toEqual([1, expect.stringContaining("matches --data-source real")]);
    expect(existsSync(real)).toBe(false);
    const [trained] = await cli.json(`train ucb --out ${join(cli.folder, "p")} --id router-new`);
    expect(trained.sealed).toBe(true);
    expect((await cli.run("verify")).code).toBe(0);
  });

  it("folds one bandit state from what several writers sealed at once, the same as from one writer", async () => {
    const wire = (n: number) =>
      JSON.stringify(
        draftWire(`r-${n}`, { streams: [stepWire({ step: { chosen: n % 2, reward: n / 8 } })] }),
      );
    const weightsFrom = async (writers: readonly (readonly number[])[]) => {
      const cli = new Cli();
      await cli.ok("init");
      await Promise.all(
        writers.map((numbers) => cli.ok("artifact import --no-sign -", numbers.map(wire).join("\n"))),
      );
      const [trained] = await cli.json(`train ucb --out ${join(cli.folder, "p")} --id r1`);
      expect(trained.rows).toBe(8);
      return trained.weights;
    };
    const together = await weightsFrom([
      [7, 0, 2],
      [5, 1],
      [3, 6, 4],
    ]);
    expect(together).toBe(await weightsFrom([[0, 1, 2, 3, 4, 5, 6, 7]]));
  });

  it.each(["ucb", "linucb", "thompson", "thompson --form linear"])(
    "%s grows by what is new, counts no decision twice, and does nothing where nothing is new",
    async (words) => {
      const cli = new Cli();
      await cli.ok("init");
      const add = (from: number, to: number) => {
        const wires = Array.from({ length: to - from }, (_, i) => {
          const n = from + i;
          const step = { chosen: n % 2, reward: n % 4 === 0 ? null : (n % 8) / 8 };
          return JSON.stringify(draftWire(`r-${n}`, { streams: [stepWire({ step })] }));
        });
        return cli.ok("artifact import --no-sign -", wires.join("\n"));
      };
      const train = async (name: string) =>
        (await cli.json(`train ${words} --out ${join(cli.folder, name)} --id ${name}`))[0];
      await add(0, 8);
      expect(await train("one")).toMatchObject({ added: 6, rows: 6 });
      await add(8, 16);
      // A refused id leaves the state as it was: the decisions are new to the next training.
      const taken = await cli.run(`train ${words} --out ${join(cli.folder, "again")} --id one`);
      expect([taken.code, taken.err]).toEqual([
        1,
        expect.stringMatching(/No row was learned\. .*\[revision-exists\]/),
      ]);
      const two = await train("two");
      expect(two).toMatchObject({ added: 6, rows: 12, sealed: true });
      expect(await train("two")).toMatchObject({ added: 0, revision: two.revision, sealed: false });
      expect(await train("three")).toMatchObject({ added: 0, weights: two.weights });
      expect((await cli.run(`train ${words} --out ${join(cli.folder, "two")} --id other`)).code).toBe(1);
      expect((await cli.run("verify")).code).toBe(0);
    },
  );

  it("says what is wrong: no rows, a missing flag, an unknown column, an existing output", async () => {
    const cli = new Cli();
    const data = writeWorld(cli, 20);
    const codeOf = async (words: string) => {
      const { code, err } = await cli.run(`${words} --json`);
      return [code, JSON.parse(err.split("\n").find((line) => line.startsWith("{"))!).error.code];
    };
    const out = join(cli.folder, "x");
    expect(await codeOf(`train bc --data ${data} --session other --out ${out} --id r`)).toEqual([
      1,
      "empty-split",
    ]);
    expect(await codeOf(`data import ${data} --format vw-cb --out ${out}`)).toEqual([2, "wrong-usage"]);
    const log = (action: number) =>
      cli.run(
        `data import ${cli.file(`${action}.vw`, `${action}:1:0.5 | x\n`)} --format vw-cb --actions 2 --out ${out}`,
      );
    expect((await log(0)).err).toContain("Actions of Vowpal Wabbit begin with 1.");
    expect((await log(3)).err).toContain("--actions N");
    expect(await codeOf(`data import ${data} --format csv --map a=b --out ${out}`)).toEqual([
      2,
      "wrong-usage",
    ]);
    expect(await codeOf(`data import ${data} --out ${data}`)).toEqual([1, "exists"]);
    expect(existsSync(out)).toBe(false);
  });
});
