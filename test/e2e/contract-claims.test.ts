import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { beforeAll, describe, expect, it } from "vitest";

interface Row {
  name: string;
  claim: string;
  pass: boolean;
  reason?: string;
}
interface Proof {
  name: string;
  sound(): unknown;
  broken(): unknown;
}
interface Harness {
  ROWS: readonly Proof[];
  runRows(options?: { defect?: string }): Promise<Row[]>;
  runRow(row: Proof, subject: () => unknown): Promise<Row>;
}

let harness: Harness;
beforeAll(async () => {
  if (!existsSync("dist/cli/run.js")) throw new Error("dist/ is missing. Run: npm run build");
  harness = (await import(new URL("../../scripts/contract-claims.mjs", import.meta.url).href)) as Harness;
});

describe("the harness of the rollout contracts", () => {
  it("proves every claim", async () => {
    const results = await harness.runRows();
    expect(results.filter(({ pass }) => !pass)).toEqual([]);
    expect(new Set(results.map(({ name }) => name)).size).toBe(results.length);
    expect(results.length).toBeGreaterThanOrEqual(30);
  });

  it("turns a row red for the defect seeded into it", async () => {
    const green = [];
    for (const row of harness.ROWS) if ((await harness.runRow(row, row.broken)).pass) green.push(row.name);
    expect(green).toEqual([]);
  });

  it("turns no other row red for a defect", async () => {
    const { name } = harness.ROWS.at(-1)!;
    const red = (await harness.runRows({ defect: name })).filter(({ pass }) => !pass);
    expect(red.map((row) => row.name)).toEqual([name]);
  });

  it("says so as a script: table, names, exit codes", () => {
    const script = (...args: string[]) =>
      spawnSync("scripts/check-rollout-contracts.sh", ["--no-build", ...args], { encoding: "utf8" });
    const green = script();
    expect(green).toMatchObject({ status: 0, stderr: "" });
    expect(green.stdout).toMatch(/^PASS {2}policy-revision .*[\s\S]*claims hold\n$/);
    const red = script("--seed-defect", "order-independent");
    expect(red.status).toBe(1);
    expect(red.stdout.match(/^FAIL .*/gm)).toEqual([expect.stringContaining("order-independent")]);
    expect(script("--seed-defect", "no-such-row").status).toBe(2);
    expect(script("--list").stdout.split("\n")).toContain("loop-batch");
  });
});
