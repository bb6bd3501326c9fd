import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { systemClock } from "../../src/base/index.ts";
import { openSqliteQueue } from "../../src/collect/queue/sqlite-queue.ts";
import { Cli, lines } from "../support/cli.ts";

const AGENT = `
export default async (payload, context) => {
  if (payload.fail) throw new Error("I cannot");
  return { reward: payload.a, metrics: { sample: context.sample }, finalState: { exp: context.rolloutConfig.exp_id } };
};
`;
const TASKS = lines(
  { prompt: "p", label: 1, metadata: { a: 1 } },
  { a: 2 },
  { prompt: "no metadata" },
  { fail: true },
);

describe("rollbook launch", () => {
  it("exits 1 when every rollout failed and when there is no task, 0 when some did not", async () => {
    const cli = new Cli();
    const agent = cli.file(
      "sour.mjs",
      "export default ({ a }) => { if (a < 2) throw new Error('sour'); return 1; };",
    );
    const launch = (exp: string, ...rows: object[]) =>
      cli.run(
        `launch --tasks - --agent ${agent} --exp ${exp}`,
        rows.map((row) => `${JSON.stringify(row)}\n`).join(""),
      );
    const all = await launch("all", { a: 0 }, { a: 1 });
    expect([all.code, all.err]).toEqual([1, expect.stringContaining("all 2 rollouts failed")]);
    expect((await launch("some", { a: 1 }, { a: 2 })).code).toBe(0);
    const none = await launch("none");
    expect([none.code, none.err]).toEqual([1, expect.stringContaining("no task")]);
  });

  it("says of a bad row where it is and ends, while rows before it are on their way to the book", async () => {
    const cli = new Cli();
    const agent = cli.file("one.mjs", "export default () => 1;");
    const rows = lines({ a: 1 }, { a: 2 }, { a: 3 }, { a: 4 });
    const broken = cli.file("broken.jsonl", `${rows}{"question": "bad\n`);
    const number = cli.file("number.jsonl", `${rows}5\n`);
    // A write to the closed book would be an unhandled rejection, which fails the test run.
    for (const [tasks, said] of [
      [broken, `${broken}:5:14: this string never ends`],
      [number, `row 5 of ${number} is not a JSON object`],
    ] as const) {
      const { code, err } = await cli.run(`launch --tasks ${tasks} --agent ${agent}`);
      expect([code, err]).toEqual([1, expect.stringContaining(said)]);
    }
    expect(await cli.ok(`launch --tasks ${cli.file("good.jsonl", rows)} --agent ${agent}`)).toContain(
      "4 of 4 rollouts sealed",
    );
  });

  it("names every required option that is missing, and the line of a syntax error of the agent", async () => {
    const cli = new Cli();
    const agent = cli.file("agent.mjs", "export default () => 1;\nconst a b = 1;\n");
    const tasks = cli.file("t.jsonl", lines({ a: 1 }));
    expect((await cli.run("launch")).err).toContain(
      "required options '--tasks <file>', '--agent <file|url>'",
    );
    expect((await cli.run("train ridge")).err).toContain("required options '--out <dir>', '--id <id>'");
    expect((await cli.run(`launch --tasks ${tasks} --agent ${agent}`)).err).toMatch(
      /agent\.mjs cannot be loaded: .* at line 2\./,
    );
  });

  it("gives every sample the stored payload, however an agent changes its own", async () => {
    const cli = new Cli();
    const agent = cli.file(
      "changes.mjs",
      `export default (payload) => {
         const seen = JSON.stringify(payload);
         const changes = [() => payload.deep.list.push(99), () => { payload.added = 1; }, () => { delete payload.question; }];
         for (const change of changes) try { change(); } catch {}
         return { reward: 1, finalState: { seen } };
       };`,
    );
    const metadata = { question: "2 + 1", deep: { list: [1] } };
    const rows = lines({ prompt: "sum", label: 3, metadata }, { prompt: "no metadata", label: 4 });
    const tasks = cli.file("tasks.jsonl", rows);
    const { code, err } = await cli.run(`launch --tasks ${tasks} --agent ${agent} --samples 3 --exp e`);
    expect([code, err]).toEqual([
      0,
      expect.stringMatching(/row 2 of \S+: metadata is missing; .* empty payload\. Write the row again with/),
    ]);
    const [{ rolloutId: first }] = await cli.json("artifact ls");
    // No router took part: the one step of the rollout records the agent itself.
    expect((await cli.run(`route explain ${first}`)).err).toContain(
      `${first} has no model call, so there is no choice to explain. [no-decision]`,
    );
    const seen: object[] = [];
    for (const { rolloutId } of await cli.json("artifact ls"))
      seen.push(JSON.parse((await cli.json(`artifact show ${rolloutId}`))[0].finalStateValue.seen));
    const empty = seen.filter((payload) => Object.keys(payload).length === 0);
    expect([seen.length, empty.length]).toEqual([6, 3]);
    for (const payload of seen) expect([metadata, {}]).toContainEqual(payload);
    const out = join(cli.folder, "rows.jsonl");
    await cli.ok(`data convert --to slime-prompts --out ${out}`);
    const stored = readFileSync(out, "utf8").trim().split("\n");
    const byPrompt = new Map(stored.map((line) => [JSON.parse(line).prompt, JSON.parse(line).metadata]));
    expect([byPrompt.get("sum"), byPrompt.get("no metadata")]).toEqual([metadata, {}]);
    expect(readFileSync(tasks, "utf8")).toBe(rows);
  });

  it("refuses a row with the old name of rollout_config, or metadata that is no object, by its line", async () => {
    const cli = new Cli();
    const agent = cli.file("one.mjs", "export default () => 1;");
    for (const [metadata, said] of [
      [{ _rollout: { base_url: "x" } }, "metadata._rollout has no effect"],
      [[1], "metadata is an array, not an object"],
      ["text", "metadata is a string, not an object"],
    ] as const) {
      const rows = lines({ prompt: "p", metadata: { a: 1 } }, { prompt: "p", metadata });
      const { code, err } = await cli.run(`launch --tasks - --agent ${agent}`, rows);
      expect([code, err]).toEqual([1, expect.stringMatching(/row 2( of \S+)?: /)]);
      expect(err).toContain(said);
    }
    expect(await cli.json("artifact ls")).toEqual([]);
  });

  it("runs failed samples again after a fix, by owner, and compares experiments by their last results", async () => {
    const cli = new Cli({ clock: systemClock });
    const tasks = cli.file("t.jsonl", lines({ a: 1 }, { a: 2 }, { a: 3 }));
    const agent = (name: string, body: string) =>
      cli.file(name, `export default async ({ a }, context) => { ${body} };`);
    const launch = (file: string, ...more: string[]) =>
      cli.run(["launch", "--tasks", tasks, "--agent", file, "--samples", "2", "--json", ...more]);
    const summaryOf = ({ out }: { out: string }) => JSON.parse(out.trimEnd().split("\n").at(-1)!);
    const broken = agent(
      "a.mjs",
      "if (a === 2 && context.sample === 1) throw new Error('no tool'); return a / 10;",
    );
    expect(summaryOf(await launch(broken, "--exp", "e"))).toMatchObject({ total: 6, failed: { agent: 1 } });
    await launch(agent("b.mjs", "return a / 10 + 0.5;"), "--exp", "f");

    // An unchanged agent fails again. Each retry round is a separate result. The same round given again does not run
    // twice.
    const other = await launch(broken, "--exp", "e", "--retry", "failed:provider");
    expect([other.code, summaryOf(other).total]).toEqual([0, 0]);
    expect(other.err).toContain("nothing to run again");
    const again = await launch(broken, "--exp", "e", "--retry", "failed");
    expect([again.code, summaryOf(again)]).toEqual([
      1,
      expect.objectContaining({ total: 1, failed: { agent: 1 } }),
    ]);
    const fixed = await launch(agent("fixed.mjs", "return a / 10;"), "--exp", "e", "--retry", "failed:agent");
    expect([fixed.code, summaryOf(fixed)]).toEqual([
      0,
      expect.objectContaining({ total: 1, done: 1, earlier: 0 }),
    ]);
    expect((await launch(broken, "--exp", "e", "--retry", "failed")).err).toContain("nothing to run again");

    const [compared] = await cli.json("launch compare e f");
    expect(compared).toMatchObject({ better: 3, worse: 0, onlyA: 0, onlyB: 0, names: { a: "e", b: "f" } });
    expect(
      compared.a.tasks.map(({ rollouts, failed }: { rollouts: number; failed: number }) => [
        rollouts,
        failed,
      ]),
    ).toEqual(Array(3).fill([2, 0]));
    expect(compared.difference.mean).toBeCloseTo(0.5, 6);
    // Three tasks cannot prove a difference, though f earned more in each.
    expect(await cli.ok("launch compare e f")).toMatch(
      /3 better, 0 worse, 0 equal\n5 tasks or more are needed for an interval\./,
    );
    expect(await cli.run("launch compare e nothing")).toMatchObject({ code: 1 });
    expect((await launch(broken, "--retry", "dead")).code).toBe(2);
    expect((await cli.run("launch --tasks x")).code).toBe(2);
    expect(await cli.ok("verify")).not.toContain("problem:");
  });

  it("seals tasks × samples, signed and verifiable, and says what happened", async () => {
    const cli = new Cli();
    await cli.ok("keys new");
    const words = `launch --tasks ${cli.file("t.jsonl", TASKS)} --agent ${cli.file("a.mjs", AGENT)} --samples 2 --exp e1`;
    const { code, out, err } = await cli.run(words);
    expect(code).toBe(0);
    expect(out).toMatch(
      /^8 of 8 rollouts sealed, failed 2 \(agent 2\), mean reward 1.5\n4 tasks, pass@1 0.666667, pass@2 0.666667 /,
    );
    expect(out).toMatch(/FAILURES +OWNER +FIRST MESSAGE\n +2 +agent +I cannot\n$/);
    expect(err).toContain("t.jsonl: metadata is missing; the agent gets an empty payload");
    expect(await cli.ok("verify")).toContain("8");
    const listed = await cli.json("artifact ls");
    expect(listed.length).toBe(8);
  });

  it("lists a rollout without a reward as unlabelled, and says in one line what an agent lacks", async () => {
    const cli = new Cli();
    const tasks = `--tasks ${cli.file("t.jsonl", lines({ a: 1 }))}`;
    await cli.ok(
      `launch ${tasks} --agent ${cli.file("a.mjs", "export default () => ({ metrics: { x: 1 } });")}`,
    );
    expect((await cli.json("artifact ls"))[0].score).toBeNull();
    expect((await cli.ok("artifact ls")).split("\n")[1]).toMatch(/ - {2}terminal$/);
    const agent = cli.file("b.cjs", 'require("./none.cjs");');
    const { code, err } = await cli.run(`launch ${tasks} --agent ${agent}`);
    expect([code, err]).toEqual([1, expect.stringMatching(/Cannot find module .* Require stack: - /)]);
    expect(err).not.toContain("\ufffd");
  });

  it("makes a key where there is none, and every rollout has a receipt that the artifact names", async () => {
    const cli = new Cli();
    const words = `launch --tasks ${cli.file("t.jsonl", TASKS)} --agent ${cli.file("a.mjs", AGENT)} --json`;
    const { out, err } = await cli.run(words);
    expect(err).toContain("made a key to sign with");
    const rollouts = out
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line))
      .filter(({ kind }) => kind === "rollout");
    expect(rollouts.map(({ receipt }) => receipt.outcome)).toEqual(Array(4).fill("stored"));
    expect(await cli.ok("verify --require-trusted")).toContain("4");
    for (const { rolloutId, receipt } of rollouts)
      expect(await cli.ok(`artifact show ${rolloutId}`)).toMatch(
        new RegExp(`receipt +stored, at .* \\(${receipt.digest.slice(7, 15)}`),
      );
    expect((await cli.run(words)).err).not.toContain("made a key");
  });

  it("shares its work with a worker that joins, through the same server: claims, uploads, receipts", async () => {
    const cli = new Cli();
    const [tasks, agent] = [cli.file("t.jsonl", TASKS), cli.file("a.mjs", AGENT)];
    const launched = cli.json(`launch --tasks ${tasks} --agent ${agent} --samples 3 --concurrency 0`);
    while (!existsSync(`${cli.book}/queue.db`)) await sleep(20);
    const queue = openSqliteQueue(`${cli.book}/queue.db`, { clock: systemClock });
    while ((await queue.counts()).waiting < 12) await sleep(20);
    await queue.close();
    const [worked] = await cli.json(`worker --queue ${cli.book}/queue.db --agent ${agent} --idle 5`);
    expect(worked).toEqual({ begun: 12, receipts: { stored: 12 } });
    const results = await launched;
    expect(results.filter(({ receipt }) => receipt?.outcome === "stored")).toHaveLength(12);
  });

  it("runs only what is missing when given again, and all of it under another name", async () => {
    const cli = new Cli();
    const [tasks, agent] = [cli.file("t.jsonl", TASKS), cli.file("a.mjs", AGENT)];
    const first = await cli.json(`launch --tasks ${tasks} --agent ${agent}`);
    const again = await cli.json(`launch --tasks ${tasks} --agent ${agent}`);
    expect(again.at(-1)).toMatchObject({ kind: "summary", total: 4, done: 4, earlier: 4 });
    const ids = (all: { rolloutId?: string }[]) => all.flatMap(({ rolloutId }) => rolloutId ?? []).sort();
    expect(ids(again)).toEqual(ids(first));
    const other = await cli.json(`launch --tasks ${tasks} --agent ${agent} --exp other`);
    expect(other.at(-1)).toMatchObject({ done: 4, earlier: 0 });
  });

  it("hands configuration on in its order, and refuses a key in it", async () => {
    const cli = new Cli();
    const agent = cli.file(
      "c.mjs",
      "export default (_, { rolloutConfig: c }) => ({ reward: c.model_id === 'm' && c.sampling_params.top_p === 1 && c.depth === 2 ? 1 : 0 });",
    );
    const words = ["launch", "--tasks", cli.file("t.jsonl", "{}\n"), "--agent", agent, "--json"];
    const given = ["--model", "m", "--sampling", '{"top_p":1}', "--config", '{"depth":2,"model_id":"x"}'];
    const summary = (await cli.ok([...words, ...given])).trim().split("\n").at(-1)!;
    expect(JSON.parse(summary)).toMatchObject({ meanReward: 1 });
    const refused = await cli.run([...words, "--config", '{"api_key":"sk-1"}']);
    expect(refused.code).toBe(1);
    expect(refused.err).toContain("key-on-disk");
  });

  it("reads tasks from stdin, and a worker that comes late finds nothing to do", async () => {
    const cli = new Cli();
    const agent = cli.file("a.mjs", AGENT);
    expect(await cli.ok(`launch --tasks - --agent ${agent}`, TASKS)).toContain("4 of 4");
    expect(await cli.ok(`worker --queue ${cli.book}/queue.db --agent ${agent}`)).toBe(
      "0 rollouts begun here\n",
    );
  });

  it.each([
    ["a bad line, by its place", "{}\n{oops\n", "", "t.jsonl:2"],
    ["a task file that is not there", "{}\n", "--tasks no-such-file", "no-such-file"],
    ["an agent that is not there", "{}\n", "--agent no-such-agent.mjs", "bad-agent"],
    ["no samples", "{}\n", "--samples 0", "at least 1"],
    [
      "an environment that is none",
      "{}\n",
      "--environment here",
      "It must be NAME@VERSION, such as local@1.",
    ],
    ["a file that is no list of tasks", "run: first\n", "", "name a file with one JSON object per line."],
    [
      "a budget that nothing enforces",
      "{}\n",
      "--budget-usd 1",
      "--budget-usd has no effect without --gateway.",
    ],
    ["a limit that nothing is measured by", "{}\n", "--drift 1/2", "--drift has no effect without --target."],
  ])("refuses %s", async (_name, tasks, words, message) => {
    const cli = new Cli();
    const base = `launch --tasks ${cli.file("t.jsonl", tasks)} --agent ${cli.file("a.mjs", AGENT)}`;
    const { code, err } = await cli.run(`${base} ${words}`.trim());
    expect(code).not.toBe(0);
    expect(err).toContain(message);
  });
});
