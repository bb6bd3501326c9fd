/** Plausible mistakes on the command line: the error says what happened, where, and a next step that works. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { requireMargin } from "../../src/book/judge/require-margin.ts";
import type { JudgedRow } from "../../src/judge/index.ts";
import { Cli, lines } from "../support/cli.ts";
import { decisionLine } from "../support/decision-lines.ts";
import { draftWire } from "../support/shelf.ts";

/** Decisions of a family that is not called router. */
const decisions = (count: number) =>
  lines(
    ...Array.from({ length: count }, (_, i) => ({
      ...decisionLine(`d-${i}`, { reward: i % 2 }),
      agent_role: "chooser",
    })),
  );

describe("an option that the command does not have", () => {
  it("is named before a required one that is missing, with the commands that have it", async () => {
    const { code, err } = await new Cli().run("train linucb --data x --cost-weight 1");
    expect([code, err]).toEqual([
      2,
      expect.stringMatching(/`rollbook train linucb` has no option --cost-weight\. .*rollbook train auto/),
    ]);
    expect((await new Cli().run("train linucb --discont 1 --out p --id x")).err).toMatch(
      /no option --discont\. Did you mean --discount\? See `rollbook train linucb --help`\. \[wrong-usage\]/,
    );
  });

  it("does not hide a port that is out of range", async () => {
    for (const words of ["view --port 99999", "reward serve --agent a.mjs --port 70000"])
      expect(await new Cli().run(words)).toMatchObject({
        ...{ code: 2, err: expect.stringContaining("It must be a whole number from 0 to 65535.") },
      });
  });
});

describe("a book without what was asked for", () => {
  it("writes no dataset, and names the commands that record rollouts and decisions", async () => {
    const cli = new Cli();
    await cli.ok("init");
    const out = join(cli.folder, "out.jsonl");
    const exported = await cli.run(`data export --out ${out}`);
    expect([exported.code, exported.err]).toEqual([1, expect.stringContaining("`rollbook gateway`")]);
    expect(existsSync(out)).toBe(false);
    for (const words of ["data check", "reward analyze", `train ucb --out ${cli.folder}/p --id x`])
      expect((await cli.run(words)).err).toMatch(
        /holds decisions\. Record some: .*`rollbook data import LOG`/,
      );
  });

  it("refuses a page of an experiment that it does not have, and lists those that it has", async () => {
    const cli = new Cli();
    await cli.ok("init");
    const envelope = { worker: "w", startedAtMs: 1100, endedAtMs: 1200, experiment: "first" };
    await cli.ok("artifact import -", lines(draftWire("r-1", { envelope })));
    const out = join(cli.folder, "page.html");
    for (const words of [`view --exp nosuch --out ${out}`, "artifact ls --exp nosuch"]) {
      const { code, err } = await cli.run(words);
      expect([code, err]).toEqual([1, expect.stringContaining("experiment nosuch. It has first.")]);
    }
    expect((await cli.run(`view --model nosuch --out ${out}`)).err).toContain("no rollout matches");
    expect(existsSync(out)).toBe(false);
  });

  it("does not say of one record that the book has no heads", async () => {
    const cli = new Cli();
    for (const words of ["init", "keys new"]) await cli.ok(words);
    await cli.ok("artifact import -", lines(draftWire("r-1")));
    await cli.ok("head");
    expect(await cli.ok("verify r-1")).toContain("heads: not checked for one record");
    expect(await cli.ok("verify")).toMatch(/^heads: \d+ checked/m);
  });
});

describe("a file of another kind", () => {
  it("is no replay store and no result of a suite", async () => {
    const cli = new Cli();
    const file = cli.file("routing.jsonl", decisions(3));
    for (const path of [file, join(file, "x"), join(cli.folder, "nosuch")])
      expect((await cli.run(`replay validate ${path}`)).err).toMatch(
        /is not a replay store: .*no-replay-store/,
      );
    expect((await cli.run(`bench compare ${file} ${file}`)).err).toMatch(
      /routing\.jsonl is not a result of `rollbook bench run`: it is not one JSON object/,
    );
  });
});

describe("a log that cannot judge", () => {
  it("is refused by data check: without propensities, and with too few rows", async () => {
    const cli = new Cli();
    const rows = decisions(200).trimEnd().split("\n");
    const bare = rows.map((row) => row.replaceAll(/"(propensity|probability)":[\d.]+/g, '"$1":null'));
    const check = (name: string, lines: readonly string[]) =>
      cli.run(`data check --data ${cli.file(name, `${lines.join("\n")}\n`)}`);
    const none = await check("bare.jsonl", bare);
    expect([none.code, none.out]).toEqual([
      1,
      expect.stringContaining("200 of 200 decisions have no logged"),
    ]);
    const few = await check("few.jsonl", rows.slice(0, 30));
    expect([few.code, few.out]).toEqual([1, expect.stringContaining("FAULT (size): 30 tasks with a reward")]);
  });
});

describe("decisions of another family or session", () => {
  it("are what a filter that matches nothing is blamed on", async () => {
    const cli = new Cli();
    const file = cli.file("routing.jsonl", decisions(3));
    const check = async (flags: string) => (await cli.run(`data check --data ${file} ${flags}`)).err;
    expect(await check("--session zz")).toContain("none of the 3 decisions");
    expect(await check("--session zz")).toContain(
      "matches --session zz. Correct the filter, or leave it out.",
    );
    expect(await check("--family zz")).toContain("The families there: chooser.");
  });

  it("are explained, where they were imported, by what their log says and no more", async () => {
    const cli = new Cli();
    await cli.ok("init");
    await cli.ok(`data import ${cli.file("routing.jsonl", decisions(1))}`);
    const [{ rolloutId }] = await cli.json("artifact ls");
    const explained = await cli.ok(`route explain ${rolloutId}`);
    expect(explained).toContain("was chosen with probability 0.5.");
    expect(explained).toContain("The record does not say what decided");
    expect(explained).not.toContain("static table");
    const rated = await cli.run(`feedback ${rolloutId}.0 --name solved --value 1`);
    expect(rated.err).toContain("has no recorded calls. Leave out .0 to rate the whole rollout.");
  });

  it("are in a batch for a target of their family, which train --policy makes", async () => {
    const cli = new Cli();
    await cli.ok("init");
    await cli.ok(`data import ${cli.file("routing.jsonl", decisions(40))}`);
    await cli.ok(`train ucb --out ${join(cli.folder, "a")} --id a --policy chooser`);
    const [made] = await cli.json("batch assemble --target a --level step --advantage none");
    expect(made.batch.selection).toMatchObject({ family: "chooser", level: "step" });
    const other = await cli.run("batch assemble --target a --level token --advantage none");
    expect(other.err).toContain("They are of the other level: use --level step.");
    await cli.ok(`train ucb --out ${join(cli.folder, "b")} --id b`);
    const foreign = await cli.run("batch assemble --target b --level step --advantage none");
    expect(foreign.err).toContain("Name a target of chooser (`train --policy chooser` makes one).");
  });
});

describe("a non-inferiority margin", () => {
  const row = { id: "d", measures: { reward: 1, quality: 1, cost: null, latency: null } } as JudgedRow;
  it("is refused if it is as wide as the rewards, and one is proposed", () => {
    const ask = (epsilonQuality: number, range?: { low: number; high: number }) =>
      requireMargin([row], { epsilonQuality, range, isChained: false });
    expect(() => ask(5)).toThrow(/--epsilon-quality.* is 5, .* any policy would pass\. .* such as 0\.05/);
    expect(() => ask(1)).toThrow("any policy would pass");
    expect(() => ask(0.5, { low: 0, high: 0.5 })).toThrow("any policy would pass");
    ask(0.5);
    ask(5, { low: 0, high: 10 });
  });

  it("is compared with the range of the returns of a chain, unless that is stated", () => {
    const chain = ["a", "b", "c"].map((id) => ({ ...row, id, chain: "r" }) as JudgedRow);
    const ask = (epsilonQuality: number, range?: { low: number; high: number }) =>
      requireMargin(chain, { epsilonQuality, range, isChained: true });
    ask(2);
    expect(() => ask(3)).toThrow(/is 3, not less than the range of the return \(0 … 3\).* such as 0\.15/);
    expect(() => ask(2, { low: 0, high: 2 })).toThrow("(0 … 2)");
  });
});
