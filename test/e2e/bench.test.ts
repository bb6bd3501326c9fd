import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { parseSuite, shippedSuites } from "../../src/loop/bench/index.ts";
import { Cli } from "../support/cli.ts";

describe("rollbook bench", () => {
  it("ships at least twelve suites, all of which are valid and named after their files", () => {
    const suites = [...shippedSuites()];
    expect(suites.length).toBeGreaterThanOrEqual(12);
    for (const [name, file] of suites)
      expect(parseSuite(readFileSync(file, "utf8"), file, ".").suite).toBe(name);
  });

  it("runs a suite twice to the same bytes, seals a pack that verifies, and refuses to overwrite it", async () => {
    const cli = new Cli();
    await cli.ok("keys new");
    const at = (name: string) => join(cli.folder, name);
    const text = await cli.ok(`bench run --suite smoke --out ${at("a.json")} --run-pack-dir ${at("pack")}`);
    expect(text).toMatch(/^table .*\n^linucb .*\n^ucb /m);
    await cli.ok(`bench run --suite smoke --out ${at("b.json")}`);
    expect(readFileSync(at("a.json"))).toEqual(readFileSync(at("b.json")));
    expect(await cli.ok(`bench compare ${at("a.json")} ${at("b.json")}`)).toContain(
      "+0.0000 [+0.0000, +0.0000]",
    );
    expect(await cli.ok(`verify ${at("pack")} --require-trusted`)).toContain(
      "valid: all digests, links and figures match\nsigned by 1 key, 1 trusted\n",
    );
    expect((await cli.run(`bench run --suite smoke --run-pack-dir ${at("pack")}`)).err).toContain("[exists]");
    writeFileSync(at("pack/extra"), "x");
    const { code, err } = await cli.run(`pack verify ${at("pack")}`);
    expect(code).toBe(1);
    expect(err).toContain("extra is not listed in pack.json");
  }, 120_000);

  it("writes the result before it seals a pack, so that a pack that fails does not lose it", async () => {
    const cli = new Cli({ clock: { nowMs: () => -1 } });
    const at = (name: string) => join(cli.folder, name);
    const { code } = await cli.run(
      `bench run --suite smoke --out ${at("a.json")} --run-pack-dir ${at("pack")}`,
    );
    expect([code, existsSync(at("pack/pack.json"))]).toEqual([1, false]);
    expect(JSON.parse(readFileSync(at("a.json"), "utf8")).suite.name).toBe("smoke");
  }, 120_000);

  it("says what is wrong with a suite, and what to do", async () => {
    const cli = new Cli();
    const refusal = async (suite: string) =>
      (await cli.run(`bench run --suite ${cli.file("bad.yaml", suite)}`)).err;
    const good = "suite: x\ntasks: { count: 8 }\n";
    expect(await refusal(`${good}arms: []\n`)).toContain("[bad-suite]");
    expect(await refusal(`${good}repetitons: 3\narms: [{ name: a, learner: { kind: ucb } }]\n`)).toContain(
      "repetitions",
    );
    expect(await refusal(`${good}repetitions: 1\narms: [{ name: a, learner: { kind: ucb } }]\n`)).toContain(
      "repetitions must be at least 2",
    );
    expect(await refusal(`${good}arms: [{ name: table, learner: { kind: ucb } }]\n`)).toContain(
      "the baseline",
    );
    expect((await cli.run("bench run --suite smok")).err).toContain("Did you mean smoke?");
    expect(existsSync(join(cli.folder, "bad.yaml"))).toBe(true);
  });
});
