import { spawnSync } from "node:child_process";
import { describe, expect, it } from "vitest";
import { outcomeOf } from "../../bench/support/command.ts";
import { benches, campaigns } from "../../bench/support/programs.ts";
import { runCampaign } from "../../bench/support/run-campaign.ts";
import { nearestName } from "../../src/base/nearest-name.ts";

describe("the runners", () => {
  const run = (...args: string[]) =>
    spawnSync(process.execPath, ["--import", "tsx", "bench/bench.ts", ...args], { encoding: "utf8" });

  it("load every benchmark, each with a summary", async () => {
    for (const name of benches.names) expect((await benches.load(name)).summary, name).not.toBe("");
    for (const name of campaigns.names) expect((await campaigns.load(name)).summary, name).not.toBe("");
  });

  it("list what there is when no name is given", () => {
    const { status, stdout } = run("--json");
    expect(status).toBe(0);
    expect(JSON.parse(stdout).map(({ name }: { name: string }) => name)).toEqual(benches.names);
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
    [["no-such-campaign"], "no campaign is called no-such-campaign"],
  ])("refuse %j as wrong usage", async (args, message) => {
    const { code, said } = await outcomeOf(() => runCampaign(args));
    expect([code, said]).toEqual([2, expect.stringContaining(message)]);
  });
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
