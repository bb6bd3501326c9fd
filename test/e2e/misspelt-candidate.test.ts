/** A log in which one row of 401 misspells its model: what judges it and checks it names the cause, and only the cause. */
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { Cli } from "../support/cli.ts";

const MAP = "prompt=question,model=arm,reward=score,propensity=p";

/** Hard questions need the large model; half of all questions go to it. */
function csv(...more: readonly string[]): string {
  const rows = Array.from({ length: 400 }, (_, i) => {
    const [kind, arm] = [
      i % 2 === 0 ? "prove lemma" : "say hello to",
      (i >> 1) % 2 === 0 ? "large" : "small",
    ];
    const score = (arm === "large" || i % 2 === 1) && i % 7 !== 0 ? 1 : 0;
    return `${kind} ${i},${arm},0.5,${score}`;
  });
  return ["question,arm,p,score", ...rows, ...more, ""].join("\n");
}

describe("a candidate that occurs once", () => {
  let cli: Cli;
  let data: string;
  let policy: string;
  beforeAll(async () => {
    cli = new Cli({ whenDone: () => {} });
    data = join(cli.folder, "typo.jsonl");
    policy = join(cli.folder, "p");
    // This question is in the training split: the static table chooses what won its only trial.
    const table = cli.file("typo.csv", csv("say hello to bob,larg,0.5,1"));
    await cli.ok(`data import ${table} --map ${MAP} --data-source real --out ${data}`);
    await cli.ok(`train auto --data ${data} --out ${policy} --id p`);
  });

  it("is named in the verdict of evaluate, which then compares with another baseline", async () => {
    const said = await cli.ok(`evaluate --data ${data} --checkpoint ${policy}`);
    expect(said).toContain("compared with the policy behind the log");
    expect(said).toMatch(
      /The log cannot judge the static table and the best single candidate: larg gets 100\.0 % of the choices, and no row that judges has this choice\. larg occurs in 1 of 401 rows\. If it means large, correct the name in the log/,
    );
  });

  it("is the one reason of the gate", async () => {
    const { code, err } = await cli.run(`gate --data ${data} --checkpoint ${policy} --quality-only`);
    expect(code).toBe(1);
    expect(err).toMatch(
      /the gate passes none\. p: the gate cannot judge the baseline \(the static table\): larg gets/,
    );
    expect(err).not.toMatch(/effective sample size|holds .* of all weight|weights average|the target/);
  });
});
