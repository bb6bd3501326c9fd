/** First mistakes of a new user: wrong paths, small logs, tables of their own. Errors give the fault, its place and the
 *  next step. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { systemClock } from "../src/base/index.ts";
import { parseLoopConfig } from "../src/loop/index.ts";
import { spanText, timeText } from "../viewer/src/words.ts";
import { Cli, lines } from "./support/cli.ts";
import { routingWorld } from "./support/routing-world.ts";

describe("a path that is wrong", () => {
  it("of an agent is told in words", async () => {
    const cli = new Cli();
    const tasks = cli.file("tasks.jsonl", lines({ question: "1 + 1" }));
    const { code, err } = await cli.run(`launch --tasks ${tasks} --agent nope.ts`);
    expect([code, err]).toEqual([
      1,
      expect.stringMatching(/nope\.ts cannot be read: it does not exist\. Correct the path of the agent\./),
    ]);
    expect(err).not.toContain("ENOENT");
  });

  it("of an output file is refused before the work, by every command that writes a file", async () => {
    const cli = new Cli();
    await cli.ok("init");
    const out = join(cli.folder, "missing", "folder", "x");
    for (const words of [
      `view --out ${out}.html`,
      `gate --candidate nothing --out ${out}.json`,
      `data export --out ${out}.jsonl`,
      `data import nothing.csv --map model=a,reward=b --out ${out}.jsonl`,
      `batch export nothing --format npz --out ${out}.npz`,
      `run report --config nothing.yaml --out ${out}.html`,
      `pack tar nothing --out ${out}.tar`,
      `demo --report ${out}.html --out ${cli.folder}/demo`,
    ]) {
      const { code, err } = await cli.run(words);
      expect([words, code, err]).toEqual([
        words,
        1,
        expect.stringMatching(
          /the folder .*missing\/folder does not exist\. Create it, or name another file/,
        ),
      ]);
    }
  });

  it.each([
    ["", "it is empty; upstreams is missing, and must be an object with keys (model servers, by name)"],
    ["upstreams: 3", "upstreams must be an object with keys, and is a number"],
    [
      "upstreams: { a: {} }",
      "upstreams.a.baseUrl is missing, and must be a text (`http://host:8000/v1`; without a path, `/v1` is implied)",
    ],
    ["[]", "it must be an object with keys, and is a list"],
  ])("in a gateway's configuration %j is told in words", async (text, problem) => {
    const cli = new Cli();
    await cli.ok("init");
    const config = cli.file("gateway.yaml", text);
    const { code, err } = await cli.run(`gateway --config ${config}`);
    expect([code, err]).toEqual([1, expect.stringContaining(`${config}: ${problem}.`)]);
    expect(err).toContain("docs/gateway.md");
  });
});

const MAP = "--map model=model,reward=reward,propensity=propensity,prompt=prompt";
const csv = (...rows: readonly string[]) => ["model,reward,propensity,prompt", ...rows, ""].join("\n");

describe("a table of one's own", () => {
  it("given to train, evaluate or gate is answered with the import that makes a dataset of it", async () => {
    const cli = new Cli();
    const table = cli.file("mine.csv", csv("small,1,0.5,hello"));
    const { code, err } = await cli.run(`train linucb --data ${table} --out ${cli.folder}/p --id r`);
    expect([code, err]).toEqual([2, expect.stringContaining(`\`rollbook data import ${table} --map model=`)]);
    const own = cli.file("mine.jsonl", lines({ model: "small", reward: 1 }));
    const other = await cli.run(`train linucb --data ${own} --out ${cli.folder}/p --id r`);
    expect(other.err).toContain("`rollbook data import --map`");
  });

  it.each([
    ["", "is empty. Name another file, with one decision a row."],
    [csv(), "has a header and no row below it."],
    [
      csv("large,1,0.5,hi", "small,1,50,hello"),
      "Repair the row or leave it out. Divide by 100 only if the whole column is in percent.",
    ],
    [csv("large,1,0.5,hi", "small,1,0,hello"), "A choice that was made had a probability above 0"],
  ])("%j is refused with its cause", async (text, cause) => {
    const cli = new Cli();
    const table = cli.file("mine.csv", text);
    const { code, err } = await cli.run(`data import ${table} ${MAP} --out ${cli.folder}/log.jsonl`);
    expect([code, err]).toEqual([1, expect.stringContaining(cause)]);
  });

  it("whose propensities are all 1 is warned of by import, dry run, train and judges", async () => {
    const cli = new Cli();
    const rows = Array.from(
      { length: 60 },
      (_, i) => `${i % 2 ? "small" : "large"},${i % 3},1,question ${i}`,
    );
    const table = cli.file("mine.csv", csv(...rows));
    const out = join(cli.folder, "log.jsonl");
    const text = "the logged probability of every choice is 1";
    expect(await cli.ok(`data import ${table} ${MAP} --dry-run`)).toContain(text);
    expect((await cli.run(`data import ${table} ${MAP} --out ${out}`)).err).toContain(text);
    const policy = join(cli.folder, "policy");
    expect((await cli.run(`train linucb --data ${out} --out ${policy} --id r`)).err).toContain(text);
    expect((await cli.run(`evaluate --data ${out} --checkpoint ${policy} --verbose`)).out).toContain(text);
    expect((await cli.run(`gate --data ${out} --candidate ${policy} --quality-only`)).err).toContain(text);
  });
});

describe("a small log", () => {
  it("is told with one figure by every command, and the gate names the cause once", async () => {
    const cli = new Cli();
    const log = join(cli.folder, "small.jsonl");
    writeFileSync(log, lines(...routingWorld(40, 1)));
    const policy = join(cli.folder, "policy");
    const trained = await cli.run(`train linucb --data ${log} --out ${policy} --id r`);
    const evaluated = await cli.run(`evaluate --data ${log} --checkpoint ${policy}`);
    const gated = await cli.run(`gate --data ${log} --candidate ${policy}`);
    expect([trained.code, evaluated.code, gated.code]).toEqual([0, 1, 1]);
    for (const { err } of [trained, evaluated, gated]) {
      expect(err.match(/about \d+/gi)).toEqual(["about 1000"]);
      expect(err).not.toMatch(/\d+ needed/);
    }
    expect(gated.err.match(/the log is too small/g)).toHaveLength(1);
    for (const { err } of [evaluated, gated])
      expect(
        err.match(/\d+ tasks left to judge by, with an effective sample size below 50\. Record/g),
      ).toHaveLength(1);
    expect(gated.out).not.toContain("CANDIDATE");
  });
});

describe("an agent that was edited", () => {
  const version = (reward: number) => `export default () => ({ reward: ${reward} });\n`;

  it("after a launch is told with both digests and with what to do; the same agent is not", async () => {
    const cli = new Cli();
    const tasks = cli.file("tasks.jsonl", lines({ question: "1 + 1" }, { question: "2 + 2" }));
    const agent = cli.file("agent.mjs", version(1));
    const launch = `launch --tasks ${tasks} --agent ${agent} --isolation none`;
    expect((await cli.run(launch)).err).not.toContain("ran these tasks before");
    expect((await cli.run(launch)).err).not.toContain("ran these tasks before");
    expect((await cli.run(`${launch} --exp other`)).err).not.toContain("ran these tasks before");
    cli.file("agent.mjs", version(2));
    const { code, out, err } = await cli.run(launch);
    expect([code, out]).toEqual([0, expect.stringContaining("2 rollouts")]);
    expect(err).toMatch(
      /experiment default ran these tasks before with another agent or another version of agent\.mjs \(agent-\w{12}; now agent-\w{12}\)/,
    );
    expect(err).toContain("name its agent");
    expect(err).toContain("--exp NAME");
    const [{ id: target }] = await cli.json("artifact ls --revisions");
    const cut = (exp: string) => cli.run(`batch assemble --level step --target ${target} --exp ${exp}`);
    expect((await cut("default")).err).toMatch(
      /of 2 versions of an agent: agent-\w{12} \(2 rows\), agent-\w{12} \(2 rows\)\. .*--exp NAME/,
    );
    expect((await cut("other")).err).not.toContain("versions of an agent");
    expect((await cli.run(`${launch} --exp third`)).err).not.toContain("ran these tasks before");
    expect((await cli.run(`${launch} --retry failed`)).err).not.toContain("ran these tasks before");
  });

  it.each([
    ["--samples", "--samples 2", "--samples 3"],
    ["--seed", "--seed 0", "--seed 1"],
    ["--model", "--model a", "--model b"],
  ])(
    "is not blamed for another %s, which the second launch is told and the third is not",
    async (_, before, after) => {
      const cli = new Cli();
      const tasks = cli.file("tasks.jsonl", lines({ question: "1 + 1" }, { question: "2 + 2" }));
      const agent = cli.file("agent.mjs", version(1));
      const launch = `launch --tasks ${tasks} --agent ${agent} --isolation none`;
      const told =
        "experiment default ran these tasks before with other options, such as --agent, --samples or";
      expect((await cli.run(`${launch} ${before}`)).err).not.toContain("ran these tasks before");
      expect((await cli.run(`${launch} ${after} --exp other`)).err).not.toContain("ran these tasks before");
      expect((await cli.run(`${launch} ${after}`)).err.split(told)).toHaveLength(2);
      for (const again of [before, after])
        expect((await cli.run(`${launch} ${again}`)).err).not.toContain("ran these tasks before");
    },
  );

  it("before a worker joined is told, instead of waiting for nothing", async () => {
    const cli = new Cli({ clock: systemClock });
    const tasks = cli.file("tasks.jsonl", lines({ question: "1 + 1" }));
    const agent = cli.file("agent.mjs", version(1));
    await cli.run(`launch --tasks ${tasks} --agent ${agent} --isolation none --concurrency 0 --deadline 0.2`);
    cli.file("agent.mjs", version(2));
    const worker = `worker --queue ${join(cli.book, "queue.db")} --agent ${agent} --isolation none --idle 1`;
    const { code, err } = await cli.run(worker);
    expect([code, err]).toEqual([
      0,
      expect.stringMatching(
        /1 rollout in the queue is for an agent other than agent\.mjs \(agent-\w{12}\).*Copy/,
      ),
    ]);
  });
});

it.each([
  ["first", "first"],
  ["My Project", "My-Project"],
  ["Café (neu)", "Cafe-neu"],
  ["日本語", "first"],
  ["v1.2.3", "v1-2-3"],
  ["..hidden", "hidden"],
  ["_-x-_", "x-_"],
  ["2026", "2026"],
  ["no", "no"],
  ["a".repeat(90), "a".repeat(40)],
])("a first project in the folder %j has a run of a valid name", async (folder, name) => {
  const cli = new Cli();
  const place = join(cli.folder, folder);
  const { err } = await cli.run(["init", "--example", place]);
  // The printed next step can be pasted into a shell.
  expect(err).toContain(/^[\w.-]+$/.test(folder) ? `cd ${place};` : `cd '${place}';`);
  const text = readFileSync(join(place, "loop.yaml"), "utf8");
  expect(parseLoopConfig(text, "loop.yaml", place).run).toBe(name);
});

it("the viewer shows no date of a rollout that has no time", () => {
  expect(timeText(0)).toBe("–");
  expect(spanText({ startedAtMs: 0, endedAtMs: 0 })).toBe("no time recorded");
  expect(spanText({ startedAtMs: 1000, endedAtMs: 3000 })).toBe("1970-01-01 00:00:01 UTC, took 2.00 s");
});
