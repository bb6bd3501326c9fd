import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { rngFrom } from "../../src/base/rng.ts";
import { Cli, lines } from "../support/cli.ts";
import { routingWorld } from "../support/routing-world.ts";

/** `small` is usually right on additions only, `large` on all questions. `large` costs five times as much. */
function table(rows: number): string {
  const rng = rngFrom(4);
  const body = Array.from({ length: rows }, (_, i) => {
    const hard = rng.below(2) === 1;
    const question = `${hard ? "prove the theorem of" : "add the numbers of"} case ${i}`;
    const small = rng.float() < (hard ? 0.2 : 0.95);
    return `${question},${small},${rng.float() < 0.95},0.2,1`;
  });
  return ["question,small,large,small_cost,large_cost", ...body].join("\n");
}

describe("full information on the command line", () => {
  it("trains, evaluates with an exact oracle and gates without propensities", async () => {
    const cli = new Cli();
    const csv = cli.file("all.csv", table(1500));
    const [data, out] = [join(cli.folder, "all.jsonl"), join(cli.folder, "auto")];
    const columns = "--map prompt=question,outcomes=small+large,costs={}_cost";
    const told = await cli.ok(`data import ${csv} --format outcomes ${columns} --out ${data}`);
    expect(told).toContain("1 500 with the outcomes of all candidates (no propensity is needed)");
    const [made] = await cli.json(`train auto --data ${data} --cost-weight 0.3 --out ${out} --id auto`);
    expect(made.report).toMatchObject({ fullInformation: true, costWeight: 0.3 });
    const [report] = await cli.json(`evaluate --data ${data} --checkpoint ${out}`);
    const named = Object.fromEntries(
      report.contenders.map((each: { name: string; values: { reward: { value: number } } }) => [
        each.name,
        each.values.reward.value,
      ]),
    );
    expect(Object.keys(named)).toEqual(["learned", "static", "single", "random", "oracle"]);
    expect(named.learned).toBeGreaterThan(0.9);
    expect(named.oracle).toBeGreaterThanOrEqual(named.learned);
    const gate = `gate --data ${data} --candidate ${out} --epsilon-quality 0.06`;
    const [verdict] = await cli.json(gate);
    expect(verdict).toMatchObject({ outcome: "pass" });
    const { code, err } = await cli.run(`${gate} --baseline behaviour`);
    expect(code).toBe(1);
    expect(err).toMatch(/no policy chose among them/);
  });

  it("is kept in files: a book would lose the outcomes", async () => {
    const cli = new Cli();
    const csv = cli.file("all.csv", table(10));
    const { code, err } = await cli.run(
      `data import ${csv} --format outcomes --map prompt=question,outcomes=small+large`,
    );
    expect(code).toBe(2);
    expect(err).toMatch(/--format outcomes needs --out/);
    // No estimate is needed, so neither command asks for more tasks.
    const data = join(cli.folder, "all.jsonl");
    const imported = `data import ${csv} --map prompt=question,outcomes=small+large`;
    expect((await cli.run(imported)).err).toMatch(/--map with outcomes=… needs --out/);
    expect(await cli.ok(`${imported} --dry-run`)).toMatch(
      /data source\. A book does not hold the outcomes .* with --out\.\n/,
    );
    for (const words of [`${imported} --dry-run`, `${imported} --out ${data}`, `data check --data ${data}`]) {
      const { code, out, err } = await cli.run(words);
      expect([words, code, out + err]).toEqual([words, 0, expect.not.stringContaining("only 10 tasks")]);
    }
  });

  it("lacks the outcome of a masked candidate: import and check then both ask for more tasks", async () => {
    const cli = new Cli();
    const masked = { id: "huge", selectable: false, reasons: ["too long"], probability: 0, features: {} };
    const rows = routingWorld(70, 3, { full: true }).map((row) => ({
      ...row,
      state: { ...row.state, candidates: [...row.state.candidates, masked] },
    }));
    const data = cli.file("masked.jsonl", lines(...rows));
    for (const words of [`data import ${data} --dry-run`, `data check --data ${data}`]) {
      const { out, err } = await cli.run(words);
      expect([words, out + err]).toEqual([words, expect.stringContaining("only 70 tasks")]);
    }
  });
});

describe("learners that predict rewards", () => {
  it.each(["auto", "ridge", "logistic", "knn", "csc"])("train %s is judged like the others", async (kind) => {
    const cli = new Cli();
    const data = cli.file("decisions.jsonl", lines(...routingWorld(1500, 3)));
    const out = join(cli.folder, kind);
    const text = await cli.ok(`train ${kind} --data ${data} --out ${out} --id ${kind}`);
    expect(text).toMatch(kind === "csc" ? /progressive validation, 1 row:/ : /in cross-validation on/);
    const [report] = await cli.json(`evaluate --data ${data} --checkpoint ${out}`);
    expect(report.contenders[0].basis).toBe("off-policy");
    await cli.ok(`gate --data ${data} --candidate ${out} --epsilon-quality 0.5 --quality-only`);
  });

  it("of ten rows says what is missing, not how folds are dealt", async () => {
    const cli = new Cli();
    const data = cli.file("few.jsonl", lines(...routingWorld(10, 3)));
    const out = join(cli.folder, "few");
    expect(await cli.ok(`train auto --data ${data} --out ${out} --id few`)).toMatch(
      /too few training tasks for cross-validation/,
    );
    const { code, err } = await cli.run(`evaluate --data ${data} --checkpoint ${out}`);
    expect(code).toBe(1);
    expect(err).toMatch(/Record about \d+ different tasks/);
    expect(err).not.toMatch(/folds/);
  });
});
