/** A log with one misspelled model name in 401 rows. Commands that judge or check the log name this cause, and no
 *  other. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { Cli } from "../support/cli.ts";

const MAP = "prompt=question,model=arm,reward=score,propensity=p";

/** Hard questions need the large model. Half of all questions go to the large model. */
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
    // This question is in the training split. The static table chooses `larg`, which won its only trial.
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

  it("is refused in a static table, as the router refuses it", async () => {
    const table = cli.file("t.yaml", "{ schema: rollbook.static-table.v1, default: [huge, small] }");
    for (const command of ["evaluate", "gate"])
      expect(
        (await cli.run(`${command} --data ${data} --checkpoint ${policy} --table ${table}`)).err,
      ).toMatch(/t\.yaml: it chooses "huge", which is not a candidate\. Known: .*small.*\[bad-table\]/);
    for (const [i, of] of ["{ default: [huge, small] }", table].entries()) {
      const router = cli.file(`r${i}.yaml`, `router: { table: ${of} }`);
      for (const command of ["evaluate", "gate"])
        expect(
          (await cli.run(`${command} --data ${data} --checkpoint ${policy} --router ${router}`)).err,
        ).toMatch(/the router's table: it chooses "huge", which is not a candidate\. Known: .*\[bad-table\]/);
    }
  });

  it("is no misspelling if the route of the gateway has it: then the log cannot judge the table", async () => {
    const gateway = (best: string) =>
      cli.file(
        "gateway.yaml",
        `upstreams: { own: { baseUrl: "local:own" } }
models: { small: { upstream: own }, large: { upstream: own }, xl: { upstream: own } }
routes: { auto: [small, large, xl] }
router: { exploration: 0, table: { default: [${best}, small] } }
`,
      );
    for (const command of ["evaluate", "gate"]) {
      const judge = (best: string) =>
        cli.run(`${command} --data ${data} --checkpoint ${policy} --router ${gateway(best)}`);
      expect((await judge("xl")).err).toMatch(
        /the router's table: no row of the log offers xl, so this table cannot be judged\. Record rows with it, or judge with a table without it\. \[unseen-candidate\]/,
      );
      expect((await judge("huge")).err).toMatch(
        /router\.table: it chooses "huge", which is not a candidate\. Known: small, large, xl.*\[bad-table\]/,
      );
      expect((await judge("large")).err).not.toMatch(/bad-table|unseen-candidate/);
    }
  });

  it("is a finding of data check, which names what was meant", async () => {
    const found = await cli.ok(`data check --data ${data}`);
    expect(found).toMatch(
      /WARNING \(candidates\): larg is the choice in 1 of 401 rows, .* If it means large, correct/,
    );
    expect(found).toMatch(/WARNING \(size\): only 401 tasks with a reward\. Record about 1000/);
  });

  it("is the one reason of the gate", async () => {
    const { code, err } = await cli.run(`gate --data ${data} --checkpoint ${policy} --quality-only`);
    expect(code).toBe(1);
    expect(err).toMatch(
      /no policy passed the gate\. p: the gate cannot judge the baseline \(the static table\), because larg gets/,
    );
    expect(err).not.toMatch(/effective sample size|holds .* of all weight|weights average|the target/);
  });
});

describe("a log of 400 tasks", () => {
  it("is too small for a difference: the gate says how large the difference is, and what would do", async () => {
    const cli = new Cli();
    const [data, policy] = [join(cli.folder, "log.jsonl"), join(cli.folder, "p")];
    await cli.ok(`data import ${cli.file("log.csv", csv())} --map ${MAP} --data-source real --out ${data}`);
    await cli.ok(`train auto --data ${data} --out ${policy} --id p`);
    const judge = `gate --data ${data} --checkpoint ${policy} --quality-only`;
    const refused = await cli.run(judge);
    expect(refused.err).toMatch(
      /quality may be up to [\d.]+ worse \(.*\), and the margin is 0; the estimated difference is [-+][\d.]+/,
    );
    const passed = await cli.run(`${judge} --epsilon-quality 0.4 --out ${join(cli.folder, "verdict.json")}`);
    expect(passed.err).toMatch(/cannot judge the next policy.* --exploration 0\.02/);
    const target = cli.file(
      "target.csv",
      `decision_id,probability\n${(await ids(data)).map((id) => `${id},0.5\n`).join("")}`,
    );
    expect(await cli.ok(`evaluate --data ${data} --target-probabilities ${target}`)).toMatch(
      /quality (0\.\d+) instead of \1 \(\+0, 95 % interval/,
    );
  });
});

async function ids(data: string): Promise<string[]> {
  const text = await readFile(data, "utf8");
  return text
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line).decision_id);
}
