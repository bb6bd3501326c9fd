import { execFileSync } from "node:child_process";
import { readdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { systemClock } from "../../src/base/index.ts";
import { checkRouterConfig, openRouter } from "../../src/serve/index.ts";
import { Cli, lines } from "../support/cli.ts";
import { draftWire } from "../support/shelf.ts";

describe("what a new user meets", () => {
  it("a key that exists already is kept and printed, and replaced only with --force", async () => {
    const cli = new Cli();
    const first = await cli.ok("keys new");
    const again = await cli.run("keys new");
    expect(again).toEqual({ code: 0, out: first, err: expect.stringContaining("--force replaces it") });
    expect((await cli.json("keys new"))[0]).toMatchObject({ publicKey: first.trim(), created: false });
    expect(await cli.ok("keys new --force")).not.toBe(first);
  });

  it("feedback stands in ls and show where a rollout has no reward, and not beside one", async () => {
    const cli = new Cli();
    const tasks = cli.file("t.jsonl", lines({ a: 1 }, { a: 2 }));
    const agent = cli.file("a.mjs", "export default ({ a }) => (a === 1 ? {} : { reward: 0.25 });");
    await cli.ok(`launch --tasks ${tasks} --agent ${agent}`);
    const before = await cli.json("artifact ls");
    for (const { rolloutId } of before)
      await cli.ok(`feedback ${rolloutId} --name solved --value 1 --key ${rolloutId}`);
    const rows = await cli.json("artifact ls");
    expect(rows.map(({ feedback }) => feedback)).toEqual(Array(2).fill([{ name: "solved", value: 1 }]));
    const text = await cli.ok("artifact ls");
    expect(text).toMatch(/ solved 1 {2}terminal/);
    expect(text).toMatch(/ 0\.25 {2}terminal/);
    const unlabelled = rows.find(({ score }) => score === null);
    expect(await cli.ok(`artifact show ${unlabelled.rolloutId}`)).toContain("no reward, feedback solved 1");
  });

  it("doctor says what the parts of a book take", async () => {
    const cli = new Cli();
    expect(await cli.json("doctor")).toContainEqual({
      check: "use",
      state: "ok",
      message: "no disk use: no book yet",
    });
    await cli.ok("init");
    const use = async () => (await cli.json("doctor")).find(({ check }) => check === "use").message;
    const [, root] = /^0\.1 MiB in (.*)$/.exec(await use())!;
    writeFileSync(join(root!, "packs", "large.tmp"), Buffer.alloc(3 * 2 ** 20));
    expect(await use()).toMatch(/^3\.\d MiB in .*: packs 3 MiB$/);
  });

  it("verify --expect tells an unknown digest from a record that is no head", async () => {
    const cli = new Cli();
    const tasks = cli.file("t.jsonl", lines({ a: 1 }));
    await cli.ok(`launch --tasks ${tasks} --agent ${cli.file("a.mjs", "export default () => 1;")}`);
    const [{ content }] = await cli.json("artifact ls");
    const other = await cli.run(`verify --expect ${content}`);
    expect([other.code, other.out + other.err]).toEqual([
      1,
      expect.stringContaining("is a rollbook.rollout-content.v1, not a head"),
    ]);
    const unknown = await cli.run(`verify --expect sha256:${"0".repeat(64)}`);
    expect(unknown.out + unknown.err).toContain("or the head is another book's");
  });

  it("a launch that fails says why once, and show has what the program printed below", async () => {
    const cli = new Cli();
    const tasks = cli.file("t.jsonl", lines({ a: 1 }));
    const agent = cli.file("a.mjs", 'export default () => { throw new Error("no such key"); };');
    const { code, out, err } = await cli.run(`launch --tasks ${tasks} --agent ${agent}`);
    expect([code, (out + err).split("no such key").length - 1]).toEqual([1, 1]);
    const json = await cli.run(`launch --tasks ${tasks} --agent ${agent} --exp b --json`);
    expect(json.err).toContain("no such key");
    const message = "it exited with 1: Bad: x\nfirst line\nBad: x";
    await cli.ok(
      "artifact import - --no-sign",
      lines(draftWire("bad", { ending: { kind: "failed", owner: "agent", message } })),
    );
    const shown = await cli.ok("artifact show bad");
    expect(shown).toMatch(/^rollout bad {2}failed, owner agent: it exited with 1: Bad: x {2}no scores$/m);
    expect(shown).toContain("  output\n    first line\n    Bad: x\n");
  });

  it("gate warns if the book has no record of the candidate", async () => {
    const cli = new Cli();
    const log = execFileSync(process.execPath, ["examples/routing-log.mjs", "400"]);
    const data = cli.file("log.jsonl", log);
    const out = join(cli.folder, "policy");
    await cli.ok(`train ucb --data ${data} --out ${out} --id router-1`);
    await cli.ok("init");
    const { err } = await cli.run(`gate --data ${data} --candidate ${out} --baseline behaviour`);
    expect(err).toMatch(
      /the book has no record of router-1, .* It can if the policy is trained from the book /,
    );
  });
});

describe("what a new user of a log meets", () => {
  interface Row {
    model_chosen: string;
    state: { candidates: { id: string }[] };
  }
  const routing = (count: number): Row[] =>
    String(execFileSync(process.execPath, ["examples/routing-log.mjs", String(count)]))
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));

  it("rollouts that are admitted and rollouts that are excluded add up, each under one reason", async () => {
    const cli = new Cli();
    await cli.ok("init");
    await cli.ok("artifact import examples/rollouts.jsonl --no-sign");
    const out = join(cli.folder, "policy");
    const { err } = await cli.run(`train bc --family router --out ${out} --id p`);
    const [, admitted, all, excluded, reasons] =
      /^router \(steps\): (\d+) of (\d+) rollouts used; (\d+) excluded: (.*)$/m.exec(err)!;
    const counts = reasons!.split(", ").map((each) => Number(each.split(" ")[1]));
    expect(counts.reduce((sum, each) => sum + each)).toBe(Number(excluded));
    expect(Number(admitted) + Number(excluded)).toBe(Number(all));
    // The report also covers the rollouts of the book's second family.
    const exported = join(cli.folder, "d.jsonl");
    const [{ admitted: found }] = await cli.json(`data export --format decisions --out ${exported}`);
    for (const { considered, admitted: used, lost } of found)
      expect(lost.reduce((sum: number, each: { rollouts: number }) => sum + each.rollouts, used)).toBe(
        considered,
      );
  });

  it("a checkpoint that is kept in a book is as private as the book", async () => {
    const cli = new Cli();
    const book = join(cli.folder, "b");
    await cli.ok(`init --book ${book}`);
    await cli.ok(`artifact import examples/rollouts.jsonl --no-sign --book ${book}`);
    const [inside, outside] = [join("b", "loop", "p"), "outside"].map((each) => join(cli.folder, each));
    const modes = (folder: string) =>
      readdirSync(folder).map((each) => statSync(join(folder, each)).mode & 0o777);
    for (const out of [inside!, outside!])
      await cli.ok(`train bc --book ${book} --family router --out ${out} --id p`);
    expect(modes(inside!)).toEqual([0o600, 0o600]);
    expect(modes(outside!)).toEqual([0o666 & ~process.umask(), 0o666 & ~process.umask()]);
  });

  it("evaluate and gate name the quality as their flags do, and say where it is the whole reward", async () => {
    const cli = new Cli();
    const rows = routing(600).map(({ state, ...row }) => {
      const { terms, ...rest } = state as typeof state & { terms: { solved: { value: number } } };
      return { ...row, reward: terms.solved.value, state: rest };
    });
    const data = cli.file("log.jsonl", lines(...rows));
    const out = join(cli.folder, "policy");
    await cli.ok(`train linucb --data ${data} --out ${out} --id p`);
    const whole = "Quality is the whole reward here, which has no term for cost or latency.";
    const evaluated = await cli.run(`evaluate --data ${data} --checkpoint ${out}`);
    expect(evaluated.out).toMatch(/verdict: .* quality 0\.\d+ instead of/);
    expect(evaluated.out).toContain(whole);
    const { out: gated } = await cli.run(
      `gate --data ${data} --checkpoint ${out} --quality-only --epsilon-quality 0.3`,
    );
    expect(gated).toMatch(/^p +quality +0\.\d+/m);
    expect(gated).toContain(whole);
  });

  it("a batch says why the rows of its sources are more than its rows", async () => {
    const cli = new Cli();
    await cli.ok("init");
    await cli.ok("artifact import examples/rollouts.jsonl --no-sign");
    const text = await cli.ok("batch assemble --target writer-r3 --level token");
    expect(text).toMatch(/rows +27 with/);
    expect(text).toContain("1 row with sampled tokens of more than one source");
  });

  it("train, evaluate and gate refuse a log of two families, and name them", async () => {
    const cli = new Cli();
    const rows = routing(300).map((row, i) => ({ ...row, agent_role: i % 3 === 0 ? "tools" : "router" }));
    const data = cli.file("two.jsonl", lines(...rows));
    const out = join(cli.folder, "policy");
    const refusal = "holds decisions of the families router, tools. Choose one with --family.";
    expect((await cli.run(`train bc --data ${data} --out ${out} --id p`)).err).toContain(refusal);
    await cli.ok(`train bc --data ${data} --out ${out} --id p --family router`);
    for (const command of ["evaluate --checkpoint", "gate --checkpoint"])
      expect((await cli.run(`${command} ${out} --data ${data}`)).err).toContain(refusal);
    await cli.ok(`reward analyze --data ${data}`);
  });

  it("a filter that leaves one family of a book needs no --family", async () => {
    const cli = new Cli();
    await cli.ok("init");
    const rows = routing(200).map((row, i) => ({
      ...row,
      ...(i % 2 === 0
        ? { agent_role: "tools", data_source: "real" }
        : { agent_role: "router", data_source: "synthetic" }),
    }));
    await cli.ok(`data import ${cli.file("two.jsonl", lines(...rows))}`);
    const train = (words: string) => cli.run(`train linucb --out ${join(cli.folder, "p")} --id p${words}`);
    expect((await train("")).err).toContain("holds steps of the families router, tools. Choose one");
    expect(await train(" --data-source real")).toMatchObject({
      code: 0,
      err: expect.stringContaining("tools (steps): 100 of 100 rollouts used"),
    });
    // A filter that selects nothing is the fault to report, not the families.
    expect((await train(" --session nowhere")).err).toContain("--session nowhere");
  });

  it("a policy with a field that no call carries is named by gate, route ask and the router of a gateway", async () => {
    const cli = new Cli();
    const rows = routing(300).map((row, i) => ({
      ...row,
      state: { ...row.state, fields: { tier: i % 5, tools: i % 2 } },
    }));
    const data = cli.file("log.jsonl", lines(...rows));
    const out = join(cli.folder, "policy");
    await cli.ok(`train linucb --data ${data} --out ${out} --id p`);
    const warning = "warning: p was trained on the field tier, which no call through a gateway carries";
    expect((await cli.run(`gate --data ${data} --checkpoint ${out} --quality-only`)).err).toContain(warning);
    expect((await cli.run(`route ask --checkpoint ${out} hello`)).err).toContain(warning);
    expect((await cli.run(`route ask --checkpoint ${out} hello --field tier=1`)).err).toBe("");
    const served = async (isForCalls: boolean) => {
      const log: string[] = [];
      const config = checkRouterConfig({ checkpoint: out, allowUngated: true });
      const place = { clock: systemClock, isForCalls, log: (line: string) => log.push(line) };
      await (await openRouter(config, place)).close();
      return log.join("\n");
    };
    expect(await served(true)).toContain(warning);
    expect(await served(false)).not.toContain(warning);
  });

  it.each(["cql --steps 20", "bc", "linucb", "auto"])(
    "train %s warns where every decision had one candidate, though several are named in the log",
    async (words) => {
      const cli = new Cli();
      const rows = routing(300).map(({ state, ...row }) => ({
        ...row,
        ...{ propensity: 1, primary_model: row.model_chosen, fallback_model: "none", action_fallback: 0 },
        state: {
          ...state,
          candidates: state.candidates
            .filter(({ id }) => id === row.model_chosen)
            .map((each) => ({ ...each, probability: 1 })),
        },
      }));
      const data = cli.file("one.jsonl", lines(...rows));
      const { err } = await cli.run(`train ${words} --data ${data} --out ${join(cli.folder, "p")} --id p`);
      expect(err).toContain("warning: every decision had one candidate");
    },
  );

  it("an import that breaks off after its first rows is noted, and one that wrote nothing is not", async () => {
    const cli = new Cli();
    await cli.ok("init");
    const csv = (bad: number) =>
      [
        "q,other,arm,score",
        ...Array.from({ length: 600 }, (_, i) => `q${i},o${i},a${i % 2},${i === bad ? "x" : 1}`),
        "",
      ].join("\n");
    const into = (file: string, prompt: string) =>
      cli.run(
        `data import ${file} --map prompt=${prompt},model=arm,reward=score --data-source real --no-sign`,
      );
    const late = cli.file("late.csv", csv(500));
    expect((await into(late, "q")).err).toContain("late.csv:502");
    expect((await into(late, "other")).err).toContain("imported-otherwise");
    expect((await cli.run(`data import ${late} --data-source real`)).err).toContain(
      "is not a routing dataset",
    );
    const early = cli.file("early.csv", csv(3));
    expect((await into(early, "q")).err).toContain("early.csv:5");
    expect((await into(early, "other")).err).toContain("early.csv:5");
  });
});
