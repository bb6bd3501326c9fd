import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { toRoutingRow } from "../../src/convert/routing-jsonl.ts";
import type { LoggedRow } from "../../src/learn/index.ts";
import { loggedRow } from "../support/chain-world.ts";
import { Cli } from "../support/cli.ts";

/** Episodes of two decisions, each with a return of exactly 1: the first choice says which step pays. */
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

describe("episodes on the command line", () => {
  it("evaluate, gate and train cql refuse episodes that a split by task would tear", async () => {
    const cli = new Cli();
    const data = write(
      cli,
      episodes(400, (episode, step) => `task-${episode}-${step}`),
    );
    const policy = join(cli.folder, "bc");
    expect((await cli.run(`train bc --data ${data} --out ${policy} --id bc`)).code).toBe(0);
    for (const command of [
      `evaluate --data ${data} --checkpoint ${policy} --discount 1`,
      `gate --data ${data} --candidate ${policy} --discount 1 --quality-only --baseline behaviour`,
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
    const judge = `evaluate --data ${data} --checkpoint ${policy} --discount 1 --exploration 1`;
    const [found] = await cli.json(judge);
    expect(found).toMatchObject({ behaviour: { value: 1 }, horizon: 2, unlabelled: 80 });
    expect(found.rows).toBe(2 * found.episodes);
    expect((await cli.run(judge)).out).toContain("80 rows of episodes without an outcome are left out");
  });
});
