import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { outcomeOf } from "../../bench/support/command.ts";
import { benches, campaigns } from "../../bench/support/programs.ts";
import { addToTally } from "../../bench/support/round-tally.ts";
import { runCampaign } from "../../bench/support/run-campaign.ts";
import { nearestName } from "../../src/base/nearest-name.ts";

describe("the runners", () => {
  const run = (...args: string[]) =>
    spawnSync(process.execPath, ["--import", "tsx", "bench/bench.ts", ...args], { encoding: "utf8" });

  it("load every campaign, each with a summary", async () => {
    for (const name of campaigns.names) expect((await campaigns.load(name)).summary, name).not.toBe("");
  });

  it("load every benchmark and list it with a summary when no name is given", () => {
    const { status, stdout } = run("--json");
    expect(status).toBe(0);
    const listed: { name: string; summary: string }[] = JSON.parse(stdout);
    expect(listed.map(({ name }) => name)).toEqual(benches.names);
    for (const { name, summary } of listed) expect(summary, name).not.toBe("");
  });

  it("answer an unknown name with the nearest, as wrong usage", () => {
    const { status, stderr } = run("bsae");
    expect(status).toBe(2);
    expect(stderr).toContain("no bench is called bsae. Did you mean base?");
  });

  it.each([
    [["--skale", "1"], "--skale"],
    [["any", "--scale", "0"], "--scale 0 is not"],
    [["any", "--scale", "x"], "--scale x is not"],
    [["any", "--seed=-1"], "--seed -1 is not"],
    [["any", "--seed", "18446744073709551616"], "is not a whole number"],
    [["cluster", "--rounds", "20-15"], "--rounds 20-15 is not a range"],
    [["tamper", "--rounds", "1-2"], "tamper runs as a whole"],
    [["cluster", "--tally", "file"], "--tally adds up ranges"],
    [["no-such-campaign"], "no campaign is called no-such-campaign"],
  ])("refuse %j as wrong usage", async (args, message) => {
    const { code, said } = await outcomeOf(() => runCampaign(args));
    expect([code, said]).toEqual([2, expect.stringContaining(message)]);
  });
});

it("a campaign in pieces is added up: a range that was run again counts once, as it came out last", () => {
  const folder = mkdtempSync(join(tmpdir(), "rollbook-tally-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const add = (seed: string, first: number, failed: number) =>
    addToTally(join(folder, "tally"), {
      name: "c",
      seed,
      first,
      last: first + 5,
      passed: 6 - failed,
      failed,
    });
  add("1", 7, 6);
  add("2", 1, 6);
  add("1", 1, 0);
  expect(add("1", 7, 1)).toBe("c, rounds 1-6, 7-12: 11 passed, 1 failed (seed 1)");
});

describe("the nearest name", () => {
  it.each([
    ["tampr", ["tamper", "crash", "base"], "tamper"],
    ["contract", ["contracts", "store"], "contracts"],
    ["x", [], undefined],
  ])("to %s among %j is %s", (name, names, expected) => {
    expect(nearestName(name, names)).toBe(expected);
  });
});
