import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { loggedRow } from "../../../test/support/chain-world.ts";
import { fastFolder } from "../../../test/support/fast-folder.ts";
import { rngFrom } from "../../base/rng.ts";
import { toRoutingRow } from "../../convert/routing-jsonl.ts";
import type { LoggedRow } from "../../learn/index.ts";
import { evaluateCheckpoint } from "../judge/index.ts";
import { trainPolicy } from "./train.ts";

const folder = fastFolder("promise-of-chains");
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Rollouts of two decisions: the last decision is rewarded more often if the first one chose x. */
function log(rollouts: number): LoggedRow[] {
  const rng = rngFrom(4);
  return Array.from({ length: rollouts }, (_, r) => {
    const x = rng.below(2);
    const choices = [rng.below(2), rng.below(2)];
    const won = rng.float() < (choices[0] === x ? 0.9 : 0.3) ? 1 : 0;
    return choices.map((chosen, s) =>
      loggedRow({
        ...{ id: `r${r}/0/${s}`, chain: `r${r}/0/0`, task: `r${r}`, chosen, atMs: r },
        context: { prompt: "", fields: { x, first: 1 - s } },
        ...{ reward: s === 1 ? won : 0, terminal: s === 1 },
      }),
    );
  }).flat();
}

function write(name: string, rows: readonly LoggedRow[]): { data: string } {
  const data = join(folder, `${name}.jsonl`);
  writeFileSync(data, rows.map((row) => `${JSON.stringify(toRoutingRow(row))}\n`).join(""));
  return { data };
}

describe("the promise of a floor over chains", () => {
  const all = log(2000);
  const isPending = ({ atMs }: LoggedRow) => atMs % 3 === 0;
  const some = write(
    "pending",
    all.map((row) => (isPending(row) && row.terminal ? { ...row, reward: null } : row)),
  );
  const rest = write(
    "ended",
    all.filter((row) => !isPending(row)),
  );
  const table = join(folder, "table.yaml");
  writeFileSync(table, "schema: rollbook.static-table.v1\ndefault: left");
  const train = (source: { data: string }, id: string) =>
    trainPolicy(source, {
      ...{ id, learner: { kind: "ridge" }, floorRisk: 0.4, out: join(folder, id) },
      promise: { propensityFloor: 0.5, table },
    });

  it("does not count a pending outcome as 0", async () => {
    const [a, b] = [await train(some, "a"), await train(rest, "b")];
    const { floor, bound, data, units } = a.checkpoint.promise!.record;
    expect(b.checkpoint.promise!.record).toMatchObject({ floor, bound, data, units });
    expect(floor).not.toBeNull();
  });

  it("is followed from its rows, and kept by the same rows whether chains are judged or decisions", async () => {
    const checkpoint = join(folder, "a");
    const whole = await evaluateCheckpoint(some, { checkpoint, table });
    const single = await evaluateCheckpoint(some, { checkpoint, table, discount: 0 });
    expect(whole.kept).toMatchObject({ followed: true });
    expect(whole.kept!.realised).toBeGreaterThan(0);
    expect(single.kept).toEqual(whole.kept);
  });
});
