import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { RoutingRow } from "../../src/convert/routing-jsonl.ts";
import { filesHolding } from "../support/book-files.ts";
import { Cli, lines } from "../support/cli.ts";
import { decisionLine } from "../support/decision-lines.ts";

const CSV = "--format csv --map action=arm,reward=score,propensity=p";

/** The rows that an import of `text` writes. */
async function imported(text: string, words: string, cli = new Cli()): Promise<RoutingRow[]> {
  const out = join(cli.folder, "out.jsonl");
  await cli.ok(`data import ${cli.file("log", text)} ${words} --out ${out}`);
  return readFileSync(out, "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
}

async function faultOf(text: string, words: string): Promise<{ exit: number; message: string }> {
  const cli = new Cli();
  const log = cli.file("log", text);
  const { code, err } = await cli.run(`data import ${log} ${words} --out ${cli.folder}/out.jsonl`);
  return { exit: code, message: err };
}

const idsOf = (rows: readonly RoutingRow[]) =>
  rows.map((row) => [row.model_chosen, row.state.candidates.map(({ id }) => id)]);

describe("the candidates of an imported row", () => {
  it("are those of the whole csv, whatever the row chose", async () => {
    const both = ["action-0", "action-1"];
    expect(idsOf(await imported("arm,score,p\n0,1,0.5\n1,0,0.5\n0,1,0.5\n", CSV))).toEqual([
      ["action-0", both],
      ["action-1", both],
      ["action-0", both],
    ]);
  });

  it("are as many as --actions says, and named as it says", async () => {
    const text = "arm,score,p\n0,1,0.5\n1,0,0.5\n";
    expect((await imported(text, `${CSV} --actions 3`)).map((row) => row.state.candidates.length)).toEqual([
      3, 3,
    ]);
    const named = "arm,score,p\nlarge,1,0.5\nsmall,0,0.5\n";
    expect(idsOf(await imported(named, `${CSV} --actions small,large`))).toEqual([
      ["large", ["small", "large"]],
      ["small", ["small", "large"]],
    ]);
  });

  it("are the names in the action column, where that holds names or numbers of another kind", async () => {
    expect(idsOf(await imported("arm,score,p\nb,1,0.5\na,0,0.5\n", CSV))).toEqual([
      ["b", ["a", "b"]],
      ["a", ["a", "b"]],
    ]);
    expect(idsOf(await imported("arm,score,p\n10,1,0.5\n9,0,0.5\n", CSV))[0]).toEqual(["10", ["9", "10"]]);
  });

  it("are the same for every row of RLlib and Open Bandit logs", async () => {
    const steps = [0, 1, 0].map((actions) => ({
      type: "SampleBatch",
      actions,
      rewards: 1,
      obs: [1],
      action_prob: 0.5,
    }));
    const rows = await imported(lines(...steps), "--format rllib");
    expect(rows.map((row) => row.state.candidates.length)).toEqual([2, 2, 2]);
    const bandit = "item_id,position,click,propensity_score\n0,1,0,0.5\n1,1,1,0.5\n";
    const shown = await imported(bandit, "--format open-bandit --actions 4");
    expect(shown.map((row) => row.state.candidates.length)).toEqual([4, 4]);
  });

  it("are never guessed from a file with one action, nor exceeded, nor stated in vain", async () => {
    const one = await faultOf("arm,score,p\n0,1,0.5\n0,0,0.5\n", CSV);
    expect(one).toMatchObject({
      exit: 1,
      message: expect.stringMatching(/every row has the model 0, .* --actions 2/),
    });
    const named = await faultOf("arm,score,p\nlarge,1,0.5\nlarge,0,0.5\n", CSV);
    expect(named.message).toMatch(/every row has the model large, .* --actions large,OTHER\. \[/);
    const beyond = await faultOf("arm,score,p\n0,1,0.5\n2,0,0.5\n", `${CSV} --actions 2`);
    expect(beyond.message).toMatch(/log:3: action 2 is not in 0 … 1/);
    const name = await faultOf("arm,score,p\nsmall,1,0.5\n", `${CSV} --actions 2`);
    expect(name.message).toMatch(/arm "small" is not a number of 0 or more.*--actions a,b,c/);
    for (const format of ["routing", "vw-adf", "vw-dsjson"]) {
      const idle = await faultOf("", `--format ${format} --actions 2`);
      expect([idle.exit, idle.message]).toEqual([2, expect.stringContaining("--actions changes nothing")]);
    }
  });
});

describe("an imported log", () => {
  it("is exported by one family, if two have its decisions", async () => {
    const cli = new Cli();
    await cli.ok("init");
    const file = cli.file("log.csv", "arm,score,p\na,1,0.5\nb,0,0.5\n");
    const words = `data import ${file} --data-source real --map model=arm,reward=score,propensity=p`;
    await cli.ok(words);
    await cli.ok(`${words} --family router --again`);
    const out = join(cli.folder, "out.jsonl");
    const refused = await cli.run(`data export --out ${out}`);
    expect([refused.code, refused.err]).toEqual([
      1,
      expect.stringMatching(/Export one of them: --family router/),
    ]);
    await cli.ok(`data export --out ${out} --family router`);
    await cli.ok(`data import ${out} --out ${join(cli.folder, "again.jsonl")}`);
    expect((await cli.run("data check")).out).toContain("2 rows of 4 repeat the id of another");
  });

  it("has times that mean one moment", async () => {
    const timed = (time: string) => `arm,score,p,t\na,1,0.5,${time}\nb,0,0.5,${time}\n`;
    const format = `${CSV},time=t`;
    for (const time of ["01/05/2026", "May 5", "13/05/2026", "2026-02-30"])
      expect((await faultOf(timed(time), format)).message).toMatch(
        /:2: t ".*" is no time of ISO 8601, nor seconds or milliseconds since 1970\. Write an existing date and time as 2026-05-31T10:00:00Z/,
      );
    for (const time of [
      "2026-05-01",
      "2026-05-01 00:00:00 UTC",
      "2026-05-01T02:00:00.000+02:00",
      "1777593600",
      "1777593600000",
    ])
      expect((await imported(timed(time), format))[0]!.timestamp).toBe("2026-05-01T00:00:00.000Z");
  });

  it("may separate its columns by semicolons or tabs", async () => {
    for (const [separator, quoted] of [
      [";", '"b;c"'],
      ["\t", '"b\tc"'],
    ] as const) {
      const table = `arm,score,p\na,1,0.5\n${quoted},0,0.5\n`.replaceAll(",", separator);
      const rows = await imported(table, CSV);
      expect(rows.map((row) => row.model_chosen)).toEqual(["a", quoted.slice(1, -1)]);
    }
  });

  it("enters once: the same file with another map is refused, unless its rows are to count twice", async () => {
    const cli = new Cli();
    await cli.ok("init");
    const file = cli.file("log.csv", "arm,score,p,c\na,1,0.5,2\nb,0,0.5,3\n");
    const words = `data import ${file} --data-source real --map model=arm,reward=score,propensity=p`;
    await cli.ok(words);
    expect(await cli.ok(words)).toContain("2 already there");
    const refused = await cli.run(`${words},cost=c`);
    expect(refused).toMatchObject({ code: 1 });
    expect(refused.err).toMatch(
      /log\.csv is already in this book, as a whole or in part, imported without cost=\. You now import it with --map cost=c; the rest is the same\. Each row would get another id, and so count twice\./,
    );
    expect(refused.err).not.toContain("--again");
    expect(await cli.ok(`${words},cost=c --again`)).toContain("2 decisions sealed");
    const moved = await cli.run(`${words} --family router`);
    expect(moved.err).toMatch(
      /imported without --family\. You now import it with --family router; .*--again/,
    );
    // Imported decisions hold no conversation. An export would be empty, so it is refused.
    for (const export_ of [
      "data export --format sft",
      "data export --format pairs",
      "data convert --to trl-sft",
    ])
      expect((await cli.run(`${export_} --out ${join(cli.folder, "empty.jsonl")}`)).err).toMatch(
        /of 4 .*rollouts none has a conversation that ends with a reply of the model/,
      );
    expect(existsSync(join(cli.folder, "empty.jsonl"))).toBe(false);
  });

  it("whose rows keep mapped ids says that the book would hold two contents of each", async () => {
    const cli = new Cli();
    await cli.ok("init");
    const file = cli.file("log.csv", "n,arm,score,p,c\nx1,a,1,0.5,2\nx2,b,0,0.5,3\n");
    const words = `data import ${file} --data-source real --map id=n,model=arm,reward=score,propensity=p`;
    await cli.ok(words);
    const { err } = await cli.run(`${words},cost=c`);
    expect(err).toMatch(/Its rows keep their ids, so the book would hold two contents of each\./);
    expect(err).not.toContain("--again");
    const moved = `${words} --family router`;
    expect((await cli.run(moved)).err).toContain("To have them in both families, add --again");
    expect(await cli.ok(`${moved} --again`)).toContain("2 decisions sealed");
    const out = join(cli.folder, "out.jsonl");
    expect((await cli.json(`data export --family router --out ${out}`))[0]).toMatchObject({ rows: 2 });
  });

  it("makes a batch of decisions that log the probability of their choice alone", async () => {
    const cli = new Cli();
    await cli.ok("init");
    const logged = cli.file("log.csv", "arm,score,p\na,1,0.5\nb,0,0.5\n");
    await cli.ok(`data import ${logged} --map model=arm,reward=score,propensity=p --data-source real`);
    const [{ digest, batch }] = await cli.json(
      "batch assemble --target logged --level step --advantage none",
    );
    expect(batch).toMatchObject({ options: { propensity: "choice" }, totals: { rows: 2 } });
    expect((await cli.run(`batch verify ${digest}`)).code).toBe(0);
    const bare = new Cli();
    await bare.ok("init");
    await bare.ok(`data import ${logged} --map model=arm,reward=score --data-source real`);
    const refused = await bare.run("batch assemble --target logged --level step --advantage none");
    expect(refused.err).toMatch(/log no probability of the choice: import it with --map propensity=COLUMN/);
    const strict = await cli.run(
      "batch assemble --target logged --level step --advantage none --propensity distribution",
    );
    expect(strict.err).toMatch(/do not log the probabilities of all candidates: use --propensity choice/);
    const untaught = await bare.run(`train auto --id p --out ${join(bare.folder, "p")}`);
    expect(untaught.err).toMatch(
      /no-propensity 2\. .*--map propensity=COLUMN.*data export.*train auto --data/,
    );
  });

  it("is batched beside decisions with all probabilities if --propensity choice says so", async () => {
    const cli = new Cli();
    await cli.ok("init");
    await cli.ok(`data import ${cli.file("whole.jsonl", lines(decisionLine("d1"), decisionLine("d2")))}`);
    const [{ family }] = (await cli.json("artifact ls --revisions")) as [{ family: string }];
    const log = cli.file("log.csv", "arm,score,p\na,1,0.5\nb,0,0.5\n");
    await cli.ok(
      `data import ${log} --map model=arm,reward=score,propensity=p --data-source real --family ${family}`,
    );
    const assemble = `batch assemble --target logged --level step --family ${family} --json`;
    const whole = await cli.run(`${assemble} --advantage none`);
    expect(JSON.parse(whole.out).batch.totals.rows).toBe(2);
    expect(whole.err).toMatch(/2 streams left out \(no-propensity\): .*all candidates.*--propensity choice/);
    const both = await cli.run(`${assemble} --advantage none --propensity choice`);
    expect(JSON.parse(both.out).batch).toMatchObject({
      ...{ totals: { rows: 4 }, options: { propensity: "choice" } },
    });
    expect(both.err).toBe("");
    const token = await cli.run("batch assemble --target logged --level token --propensity choice");
    expect(token).toMatchObject({ code: 2, err: expect.stringContaining("no effect with --level token") });
  });

  it("with one row in each group has no advantages, and the batch says so", async () => {
    const cli = new Cli();
    await cli.ok("init");
    const log = cli.file("log.csv", "arm,score,p,s\na,1,0.5,x\nb,0,0.5,y\n");
    await cli.ok(`data import ${log} --map model=arm,reward=score,propensity=p,session=s --data-source real`);
    const alone = await cli.run("batch assemble --target logged --level step");
    expect(alone.err).toMatch(/every group has one row, so every advantage is 0.*--advantage none/);
    expect((await cli.run("batch assemble --target logged --level step --advantage none")).err).toBe("");
  });

  it.each([
    { rewards: [0.1, 0.1, 0.1, 1, 1], equal: "2 of them with equal rewards: advantage 0", warns: true },
    { rewards: [0, 0, 0, 1, 0], equal: "1 of them with equal rewards: advantage 0", warns: false },
    { rewards: [0, 1, 0, 1, 0], equal: "groups       2\n", warns: false },
  ])("with the rewards $rewards in two groups counts groups without a difference", async (given) => {
    const cli = new Cli();
    await cli.ok("init");
    const rows = given.rewards.map(
      (reward, i) => `${i % 2 === 0 ? "a" : "b"},${reward},0.5,${i < 3 ? "x" : "y"}`,
    );
    const log = cli.file("log.csv", ["arm,score,p,s", ...rows].join("\n"));
    await cli.ok(`data import ${log} --map model=arm,reward=score,propensity=p,session=s --data-source real`);
    const { out, err } = await cli.run("batch assemble --target logged --level step");
    expect(out).toContain(given.equal);
    expect(/rewards within every group are equal, so every advantage is 0/.test(err)).toBe(given.warns);
    expect(await cli.ok(`batch show ${/batch (sha256:\w+)/.exec(out)![1]}`)).toContain(given.equal);
  });

  it("keeps the steps of an episode in one task, each with an id of its own", async () => {
    const batch = {
      type: "SampleBatch",
      eps_id: [7, 7, 8],
      actions: [0, 1, 0],
      rewards: [0, 1, 1],
      obs: [[1], [2], [3]],
      action_prob: [0.5, 0.5, 0.5],
    };
    const rows = await imported(lines(batch), "--format rllib");
    expect(rows.map((row) => row.task_id)).toEqual(["7", "7", "8"]);
    expect(new Set(rows.map((row) => row.decision_id)).size).toBe(3);
  });

  it("without a decision is refused", async () => {
    for (const [text, cause] of [
      ["", "is empty"],
      ["arm,score,p\n", "has a header and no row below it"],
    ] as const) {
      const { exit, message } = await faultOf(text, CSV);
      expect([exit, message]).toEqual([1, expect.stringContaining(cause)]);
    }
  });

  it("that is missing, or a directory, is said to be so", async () => {
    const cli = new Cli();
    const agent = cli.file("agent.mjs", "export default () => {};\n");
    for (const words of ["reward analyze --data", "data import --out x", `launch --agent ${agent} --tasks`]) {
      const missing = await cli.run(`${words} ${cli.folder}/nothere.jsonl`);
      expect([missing.code, missing.err]).toEqual([
        1,
        expect.stringMatching(/nothere\.jsonl does not exist/),
      ]);
      const folder = await cli.run(`${words} ${cli.folder}`);
      expect([folder.code, folder.err]).toEqual([1, expect.stringContaining(" is a directory. Name a file")]);
    }
  });
});

describe("a dry run", () => {
  const calls = Array.from({ length: 4 }, (_, i) => ({
    request: { messages: [{ role: "user", content: `question ${i}` }] },
    response: { model: ["small", "medium", "large"][i % 3] },
    score: i === 3 ? null : i / 4,
    extra: 1,
  }));
  const MAP = "--map messages=request.messages,model=response.model,reward=score";

  it("shows three rows as they were read and what is missing, and writes nothing", async () => {
    const cli = new Cli();
    const log = cli.file("calls.jsonl", lines(...calls));
    const text = await cli.ok(`data import ${log} ${MAP} --dry-run`);
    expect(text.match(/^row \d$/gm)).toEqual(["row 1", "row 2", "row 3"]);
    expect(text).toMatch(/prompt +"question 1"\n +model +medium of large, medium, small\n/);
    expect(text).toContain("calls.jsonl as jsonl: 4 rows of 4 tasks; chosen: large 1, medium 1, small 2\n");
    expect(text).toMatch(
      /not in the log: reward in 1 row\. .*\nnot in the log: propensity\. `evaluate`, `gate`, `train csc` and --floor-risk need/,
    );
    expect(text).toContain("columns that the map does not name: extra\n");
    const [preview] = await cli.json(`data import ${log} ${MAP} --dry-run`);
    expect(preview).toMatchObject({ rows: 4, labelled: 3, unread: ["extra"], chosen: { small: 2 } });
    expect(readdirSync(cli.folder)).toEqual(["calls.jsonl"]);
    const priced = cli.file("priced.csv", "arm,score,cost\na,1,2\nb,0,1\n");
    expect(await cli.ok(`data import ${priced} --map model=arm,reward=score --dry-run`)).toContain(
      "not mapped: cost. Cost is not judged. The log has a column of this name: map it with cost=cost.\n",
    );
  });

  it("finds the bad row that the import would stop at", async () => {
    const cli = new Cli();
    const log = cli.file("calls.jsonl", lines(...calls, { ...calls[0], score: "good" }));
    const { code, err } = await cli.run(`data import ${log} ${MAP} --dry-run`);
    expect([code, err]).toEqual([1, expect.stringMatching(/calls\.jsonl:5: score "good" is not a finite/)]);
  });

  it("is followed by an import into a book that trains a router of three models", async () => {
    const cli = new Cli();
    await cli.ok("init");
    const log = cli.file("calls.jsonl", lines(...calls));
    await cli.ok(`data import ${log} ${MAP} --data-source real`);
    const out = join(cli.folder, "out.jsonl");
    await cli.ok(`data export --out ${out}`);
    const rows: RoutingRow[] = readFileSync(out, "utf8")
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(rows.map(({ state }) => state.candidates.length)).toEqual([3, 3, 3, 3]);
    expect(rows.map(({ state }) => state.prompt).sort()).toEqual(calls.map((_, i) => `question ${i}`));
  });
});

describe("a recorded cost of a decision log", () => {
  it("is kept by the book as a cost term that does not count for the reward", async () => {
    const cli = new Cli();
    await cli.ok("init");
    const log = cli.file("log.jsonl", lines(decisionLine("d1", { costUsd: 0.004 }), decisionLine("d2")));
    const { out } = await cli.run(`data import ${log} --json`);
    expect(JSON.parse(out).warnings).toEqual([]);
    const exported = join(cli.folder, "out.jsonl");
    await cli.ok(`data export --out ${exported}`);
    const rows = readFileSync(exported, "utf8")
      .trim()
      .split("\n")
      .map((line): RoutingRow => JSON.parse(line));
    const terms = Object.fromEntries(rows.map(({ task_id: task, state }) => [task, state.terms]));
    expect(terms).toEqual({ "t-d1": { cost: { value: 0.004, weight: 0 } }, "t-d2": {} });
    expect(rows.map(({ reward }) => reward)).toEqual([1, 1]);
  });

  it("gives way to a cost term of the row, and beside costs of other rows it is a warning", async () => {
    const cli = new Cli();
    await cli.ok("init");
    const terms = { cost: { value: 3, weight: 0 } };
    const both = decisionLine("d1", { costUsd: 0.004, terms });
    const log = cli.file("log.jsonl", lines(both, decisionLine("d2", { costUsd: 0.005 })));
    const { out } = await cli.run(`data import ${log} --json`);
    expect(JSON.parse(out).warnings).toMatchObject([
      { code: "cost-not-kept", fields: { count: 1, first: "d1" } },
      { code: "mixed-costs", fields: { count: 1, first: "d2", others: 1 } },
    ]);
  });
});

describe("a decision log under ids that the book has", () => {
  async function bookOf(...rows: object[]): Promise<Cli> {
    const cli = new Cli();
    await cli.ok("init");
    await cli.ok(`data import ${cli.file("first.jsonl", lines(...rows))}`);
    return cli;
  }

  it("warns with their number and the first of them, and takes them in", async () => {
    const cli = await bookOf(decisionLine("d1"), decisionLine("d2"), decisionLine("d3"));
    const same = cli.file("same.jsonl", lines(decisionLine("d1"), decisionLine("d4")));
    const clean = await cli.run(`data import ${same} --json`);
    expect(JSON.parse(clean.out).warnings).toEqual([]);
    expect(clean.err).not.toContain("warning");

    const other = [decisionLine("d2", { reward: 0 }), decisionLine("d3", { reward: 0 })];
    const file = cli.file("other.jsonl", lines(decisionLine("d1"), ...other));
    const { code, out, err } = await cli.run(`data import ${file} --json`);
    expect(code).toBe(0);
    expect(JSON.parse(out)).toMatchObject({
      rows: 3,
      warnings: [{ code: "two-contents", fields: { count: 2, rollouts: ["d2", "d3"] } }],
    });
    expect(err).toMatch(/warning: 2 rollouts \(first d2\) .*to use the new contents.*\[two-contents\]\n/);
    // An export uses the contents that the warning names.
    await cli.ok(`data export --out ${join(cli.folder, "used.jsonl")}`);
    const used = readFileSync(join(cli.folder, "used.jsonl"), "utf8").trim().split("\n");
    const fresh = used.filter((line) => /"decision_id":"d[23]\//.test(line) && /"reward":0[,}]/.test(line));
    expect(JSON.parse(out).warnings[0].fields.used).toBe(fresh.length);
    expect(err).toContain(`For ${fresh.length} of them that is the new content`);
  });

  it("says nothing where the contents are of different families: each family uses its own", async () => {
    const cli = new Cli();
    await cli.ok("init");
    const log = cli.file("log.csv", "id,arm,score,p\n1,a,1,0.5\n2,b,0,0.5\n");
    const of = `data import ${log} --map id=id,model=arm,reward=score,propensity=p --data-source real`;
    await cli.ok(of);
    const { err } = await cli.run(`${of} --family router --again`);
    expect(err).not.toContain("two-contents");
    for (const family of ["router", "imported"]) {
      const [{ batch }] = await cli.json(
        `batch assemble --target logged --level step --advantage none --family ${family}`,
      );
      expect(batch.totals.rows).toBe(2);
    }
    // A dataset holds each id once, so the export is refused.
    const exported = await cli.run(`data export --out ${join(cli.folder, "all.jsonl")}`);
    expect(exported.err).toContain("rollout 1 is in the families imported and router");
  });

  it("refuses a decision that was erased from it", async () => {
    const cli = await bookOf(decisionLine("d1", { prompt: "my name is Ada" }), decisionLine("d2"));
    await cli.ok(["artifact", "erase", "d1", "--reason", "request 17", "--yes"]);
    expect(await cli.run(`data import ${join(cli.folder, "first.jsonl")}`)).toMatchObject({
      code: 1,
      err: expect.stringMatching(/decision d1 was erased from the book on purpose.*\[erased\]/),
    });
    expect(filesHolding(cli.book, "my name is Ada")).toEqual([]);
    await cli.ok(`data import ${cli.file("rest.jsonl", lines(decisionLine("d2"), decisionLine("d3")))}`);
    await cli.ok("verify");
  });
});

describe("the same rows in two files", () => {
  const rows = Array.from({ length: 60 }, (_, i) => ({
    question: `What is ${i} times ${i % 7}?`,
    arm: i % 2 === 0 ? "small" : "large",
    score: (i % 3) / 2,
    p: 0.5,
  }));
  const csv = ["question,arm,score,p", ...rows.map((row) => Object.values(row).join(","))].join("\n");
  const map = "--map prompt=question,model=arm,reward=score,propensity=p --data-source real";

  it("have the same ids and tasks, so none of them judges a policy that learned from them", async () => {
    const cli = new Cli();
    const [a, b, policy] = ["a.jsonl", "b.jsonl", "policy"].map((name) => join(cli.folder, name));
    await cli.ok(`data import ${cli.file("log.csv", csv)} ${map} --out ${a}`);
    await cli.ok(`data import ${cli.file("other.jsonl", lines(...rows))} ${map} --out ${b}`);
    expect(readFileSync(b!, "utf8")).toBe(readFileSync(a!, "utf8"));
    await cli.ok(`train ridge --data ${a} --split all --out ${policy} --id r-1`);
    const { code, err } = await cli.run(`evaluate --data ${b} --checkpoint ${policy}`);
    expect(code).toBe(1);
    expect(err).toContain("none of the 60 rows can judge the policy: 60 are for training or were trained on");
  });

  it("enter a book once: the second import adds nothing and says so", async () => {
    const cli = new Cli();
    await cli.ok("init");
    const text = await cli.ok(`data import ${cli.file("log.csv", csv)} ${map}`);
    expect(text).toContain("60 decisions sealed, 60 with a reward, 60 with a propensity");
    const other = cli.file("other.jsonl", lines(...rows, { ...rows[0], score: 0.25 }));
    expect(await cli.ok(`data import ${other} ${map}`)).toContain("1 decision sealed, 60 already there");
    const again = JSON.parse(await cli.ok(`data import ${other} ${map} --json`));
    expect(again).toMatchObject({ rows: 61, sealed: 0, known: 61, warnings: [] });
    expect((await cli.ok("artifact ls --limit 1000 --json")).trim().split("\n")).toHaveLength(61);
  });

  it("show their reward in lists and alone, are found by it, and have no time where the log has none", async () => {
    const cli = new Cli();
    await cli.ok("init");
    await cli.ok(`data import ${cli.file("log.csv", csv)} ${map}`);
    const best = (await cli.ok("artifact ls --limit 1000 --min-score 1")).trim().split("\n").slice(1);
    expect(best).toHaveLength(20);
    for (const line of best) expect(line).toMatch(/^\S+ +- +- .* 1 +terminal$/);
    const shown = await cli.ok(`artifact show ${best[0]!.split(" ")[0]}`);
    expect(shown).toMatch(/^rollout \S+ {2}terminal {2}reward 1\n/);
    expect(shown).toMatch(/\n {2}time +-\n/);
  });
});

it("artifact show has the probability of an imported choice, and tells a measured cost from a part of the reward", async () => {
  const cli = new Cli();
  await cli.ok("init");
  const log = cli.file("log.csv", "q,model,p,score,usd\nWhat is 2 + 2?,nano,0.4,1,0.0005\n");
  const map = "--map prompt=q,model=model,propensity=p,reward=score,cost=usd --actions nano,max";
  await cli.ok(`data import ${log} ${map} --data-source real`);
  const [{ rolloutId }] = await cli.json("artifact ls");
  const text = await cli.ok(`artifact show ${rolloutId}`);
  expect(text).toContain("imported chose nano (probability 0.4) of nano 0.4, max ?, reward 1");
  expect(text).toMatch(/score +cost 0\.0005 \(not part of the reward\)/);
  const rewards = await cli.ok("reward analyze");
  expect(rewards).toMatch(/^cost \(not part of the reward\) +1 .*\nterm reward +1 /m);
  expect(rewards).not.toMatch(/^cost +0 /m);
});
