import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { loggedRow } from "../../../test/support/chain-world.ts";
import { rngFrom } from "../../base/index.ts";
import { toRoutingRow } from "../../convert/routing-jsonl.ts";
import { DEFAULT_SPLIT, type LoggedRow, TRAIN_ON_ALL } from "../../learn/index.ts";
import { policyOf } from "../../policy/index.ts";
import { trainPolicy } from "./train.ts";

const folder = mkdtempSync(join(tmpdir(), "rollbook-costs-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** The candidate `right` is slightly better and costs ten times as much. Costs come only from the call bills. */
function rows(price = 0.01): LoggedRow[] {
  const rng = rngFrom(4);
  return Array.from({ length: 400 }, (_, i) => {
    const chosen = rng.below(2);
    return loggedRow({
      ...{ id: `d${i}`, context: { prompt: "", fields: { n: rng.float() } }, chosen },
      ...{ reward: chosen === 1 ? 0.6 : 0.5, costUsd: chosen === 1 ? price : 0.001 },
    });
  });
}

let made = 0;
async function train(log: readonly LoggedRow[], costWeight: number | undefined) {
  const data = join(folder, `${made++}.jsonl`);
  writeFileSync(data, log.map((row) => `${JSON.stringify(toRoutingRow(row))}\n`).join(""));
  const learner = { kind: "ridge", costWeight } as const;
  const { checkpoint, data: digest } = await trainPolicy(
    { data },
    { learner, id: "r", split: { ...DEFAULT_SPLIT, shares: TRAIN_ON_ALL }, baseline: false },
  );
  const { context, candidates } = log[0]!;
  const { probabilities } = policyOf(checkpoint).answer(context, candidates);
  return { digest, choice: candidates[probabilities.indexOf(1)]!.id };
}

describe("a cost weight", () => {
  it("weighs what the gateway recorded of the calls, where no row has a cost of its own", async () => {
    expect((await train(rows(), undefined)).choice).toBe("right");
    expect((await train(rows(), 1)).choice).toBe("right");
    expect((await train(rows(), 100)).choice).toBe("left");
  });

  it("binds the bills in the digest of the rows, and only where they are read", async () => {
    const digests = async (weight: number | undefined) => [
      (await train(rows(0.01), weight)).digest,
      (await train(rows(0.02), weight)).digest,
    ];
    const [one, other] = await digests(undefined);
    expect(other).toBe(one);
    const [cheap, dear] = await digests(100);
    expect(dear).not.toBe(cheap);
  });

  it("weighs the declared price of a choice where no cost of its call was recorded", async () => {
    const declared = rows().map(({ costUsd: _, ...row }) => ({
      ...row,
      candidates: row.candidates.map((one) => ({
        ...one,
        features: { callPrice: one.id === "right" ? 0.01 : 0.001 },
      })),
    }));
    expect((await train(declared, 1)).choice).toBe("right");
    expect((await train(declared, 100)).choice).toBe("left");
  });

  it("refuses a log of which one call has no bill, and names it", async () => {
    const log = rows().map((row, i) => {
      const { costUsd, ...rest } = row;
      return i === 7 ? rest : { ...rest, costUsd: costUsd! };
    });
    await expect(train(log, 100)).rejects.toMatchObject({ code: "no-cost", fields: { id: "d7" } });
  });

  it("refuses a log with costs of two kinds, and says so", async () => {
    const log = rows().map(({ costUsd, ...row }, i) =>
      i < 7 ? { ...row, terms: { cost: { value: costUsd!, weight: 0 } } } : { ...row, costUsd: costUsd! },
    );
    await expect(train(log, 100)).rejects.toMatchObject({
      ...{
        code: "no-cost",
        message: expect.stringMatching(/US dollars.*other decisions.*one kind at a time/),
      },
    });
  });
});
