import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { rngFrom } from "../../src/base/index.ts";
import { toRoutingRow } from "../../src/convert/routing-jsonl.ts";
import type { LoggedRow } from "../../src/learn/index.ts";
import { loggedRow } from "../support/chain-world.ts";
import { Cli } from "../support/cli.ts";

/** Episodes of two decisions with a return of exactly 1. The first choice decides which step pays. */
function episodes(count: number, taskOf: (episode: number, step: number) => string): LoggedRow[] {
  return Array.from({ length: count }, (_, episode) =>
    [0, 1].map((step) => {
      const first = episode % 2;
      return loggedRow({
        ...{ id: `e${episode}/0/${step}`, chain: `e${episode}/0/0`, task: taskOf(episode, step) },
        context: { prompt: "", fields: { step } },
        ...{ chosen: step === 0 ? first : (episode >> 1) % 2, reward: step === first ? 1 : 0 },
        terminal: step === 1,
      });
    }),
  ).flat();
}

function write(cli: Cli, rows: readonly LoggedRow[]): string {
  const file = join(cli.folder, "log.jsonl");
  writeFileSync(file, rows.map((row) => `${JSON.stringify(toRoutingRow(row))}\n`).join(""));
  return file;
}

interface Shown {
  readonly contenders: readonly {
    readonly name: string;
    readonly values: Record<string, { value: number }>;
  }[];
}
const worthOf = ({ contenders }: Shown, name: string) =>
  contenders.find((each) => each.name === name)!.values.reward!.value;

/** Episodes of two decisions with the reward at the last one. The first choice decides: right earns 1, left 0. */
function lateRewards(count: number): LoggedRow[] {
  const rng = rngFrom(5);
  return episodes(count, (episode) => `task-${episode}`).map((row, r, { [r - 1]: before }) => {
    const step = r % 2;
    const chosen = rng.below(2);
    const context = { prompt: "", fields: { step, noise: rng.float() } };
    Object.assign(row, { chosen, context, reward: step === 1 ? before!.chosen : 0 });
    return row;
  });
}

describe("a reward at the last decision", () => {
  const learners = [
    ...["auto", "ridge", "ucb", "linucb", "thompson --form linear", "csc"],
    ...["cql --steps 300 --every 100 --hidden 8 --rate 0.01"],
  ];
  it.each(learners)(
    "teaches train %s the first decision, by which evaluate and gate judge it",
    async (kind) => {
      const cli = new Cli();
      const data = write(cli, lateRewards(1200));
      const policy = join(cli.folder, "learned");
      const trained = await cli.run(`train ${kind} --data ${data} --out ${policy} --id learned`);
      expect([trained.code, trained.err]).toEqual([0, expect.any(String)]);
      expect(/these means are per decision: .* at discount 1/.test(trained.out)).toBe(
        ["auto", "ridge", "csc"].includes(kind),
      );
      const [found] = await cli.json(`evaluate --data ${data} --checkpoint ${policy}`);
      expect(found.chains).toMatchObject({ horizon: 2, discount: 1 });
      // A rollout is worth 1 if its first decision is right. The behaviour policy is right in every second rollout.
      expect(worthOf(found, "behaviour")).toBeCloseTo(0.5, 1);
      expect(worthOf(found, "learned")).toBeGreaterThan(0.9);
      const gate = `gate --data ${data} --candidate ${policy} --baseline behaviour --quality-only`;
      const [verdict] = await cli.json(gate);
      expect(verdict).toMatchObject({ outcome: "pass", rule: { discount: 1 } });
      expect(verdict.candidates[0].checks[0].candidate).toBeCloseTo(worthOf(found, "learned"), 6);
    },
  );

  it("is not counted twice: a rollout is one unit, and --discount 0 judges decisions apart", async () => {
    const cli = new Cli();
    const data = write(cli, lateRewards(1200));
    const policy = join(cli.folder, "ucb");
    await cli.run(`train ucb --data ${data} --out ${policy} --id ucb`);
    const [whole] = await cli.json(`evaluate --data ${data} --checkpoint ${policy}`);
    const [apart] = await cli.json(`evaluate --data ${data} --checkpoint ${policy} --discount 0`);
    expect(whole.units).toBe(whole.chains.episodes);
    expect(whole.rows).toBe(2 * whole.units);
    expect(apart.chains).toBeUndefined();
    expect(worthOf(apart, "behaviour")).toBeCloseTo(0.25, 1);
  });
});

describe("episodes on the command line", () => {
  it("evaluate, gate and train cql refuse episodes that a split by task would tear", async () => {
    const cli = new Cli();
    const data = write(
      cli,
      episodes(400, (episode, step) => `task-${episode}-${step}`),
    );
    const policy = join(cli.folder, "bc");
    expect((await cli.run(`train bc --data ${data} --discount 0 --out ${policy} --id bc`)).code).toBe(0);
    for (const command of [
      `evaluate --data ${data} --checkpoint ${policy} --discount 1`,
      `gate --data ${data} --candidate ${policy} --discount 1 --quality-only --baseline behaviour`,
      `train ucb --data ${data} --out ${policy}-ucb --id ucb`,
      `train cql --data ${data} --discount 1 --goal return --steps 10 --out ${policy}-cql --id cql`,
    ]) {
      const { code, err } = await cli.run(command);
      expect([code, err]).toEqual([1, expect.stringMatching(/chain e\d+\/0\/0 has decisions of 2 tasks/)]);
    }
  });

  it("judges them where chains are the units, and leaves an episode without an outcome out as a whole", async () => {
    const cli = new Cli();
    const rows = episodes(800, (episode, step) => `task-${episode}-${step}`);
    const data = write(
      cli,
      rows.map((row, r) => (r % 40 === 0 ? { ...row, reward: null } : row)),
    );
    const policy = join(cli.folder, "bc");
    await cli.run(`train bc --data ${data} --unit decision --out ${policy} --id bc`);
    const unstated = `evaluate --data ${data} --checkpoint ${policy} --discount 1 --exploration 1`;
    expect((await cli.run(unstated)).err).toMatch(/the outcome is always 1 .*state the range of outcomes/);
    const judge = `${unstated} --quality-range 0..1`;
    const [found] = await cli.json(judge);
    expect(found).toMatchObject({ chains: { horizon: 2 }, data: { unlabelled: 80 } });
    expect(worthOf(found, "behaviour")).toBe(1);
    expect(found.rows).toBe(2 * found.chains.episodes);
    expect((await cli.run(judge)).out).toMatch(
      /80 without a reward\nwhole rollouts: \d+, the longest with 2 decisions; values are sums of rewards/,
    );
  });

  it("target probabilities judge decisions by their own rewards, say so, and take no discount", async () => {
    const cli = new Cli();
    const rows = lateRewards(600);
    const data = write(cli, rows);
    const target = join(cli.folder, "target.csv");
    writeFileSync(target, ["decision_id,left,right", ...rows.map(({ id }) => `${id},0.5,0.5`)].join("\n"));
    const judge = `evaluate --data ${data} --target-probabilities ${target}`;
    const { out } = await cli.run(judge);
    expect(out).toMatch(
      /^rollouts have several decisions: values are rewards of single decisions, .*\n1 200 rows/,
    );
    expect(out).toMatch(
      /verdict: compared with the policy behind the log, the target shows .* instead of .* interval .*\)\./,
    );
    expect(out).not.toContain("SNIPS");
    expect((await cli.run(`${judge} --verbose`)).out).toContain("SNIPS");
    expect((await cli.json(judge))[0]).toMatchObject({ rows: 1200, chained: true });
    expect(await cli.run(`${judge} --discount 0.9`)).toMatchObject({
      ...{
        code: 2,
        err: expect.stringMatching(/judges each decision by its own reward.*Leave --discount out/),
      },
    });
  });
});
