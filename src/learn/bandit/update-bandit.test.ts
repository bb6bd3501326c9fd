import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { decisionWorld } from "../../../test/support/decision-world.ts";
import type { Digest } from "../../base/digest.ts";
import { BanditIncrement } from "../../contract/policy/bandit-increment.ts";
import { DEFAULT_FEATURES } from "../../policy/feature-spec.ts";
import { memoryStore } from "../../store/blob/memory-store.ts";
import type { BlobStore } from "../../store/index.ts";
import type { DecisionRow } from "../rows/decision-row.ts";
import { type BanditStatistics, statisticsOf } from "./bandit-statistics.ts";
import { updateBandit } from "./update-bandit.ts";

const linear = { ...DEFAULT_FEATURES, wordBuckets: 0, fields: [{ name: "hard", kind: "number" as const }] };
const { rows: ROWS } = decisionWorld(60, 1);
/** Each unit has three decisions. */
const unitOf = (id: string) => `u-${Math.floor(Number(id.slice(2)) / 3)}`;

async function incrementsIn(store: BlobStore): Promise<Digest[]> {
  const found: Digest[] = [];
  for await (const item of store.scan())
    if (item.type === "blob" && item.kind === BanditIncrement.kind) found.push(item.digest);
  return found;
}

async function* withUnits(rows: readonly DecisionRow[]) {
  for (const row of rows) yield { ...row, unit: unitOf(row.id) };
}

/** One process's update: it sees the increments `known` and the given decisions. */
function update(
  store: BlobStore,
  rows: readonly DecisionRow[],
  over: object = {},
  known?: readonly Digest[],
) {
  const run = async (seen: readonly Digest[]) =>
    updateBandit(store, {
      definition: { filters: {}, features: linear },
      known: seen,
      fresh: async () => ({ batches: [], rows: withUnits(rows) }),
      ...over,
    });
  return known === undefined ? incrementsIn(store).then(run) : run(known);
}

/** Equal except for the last bits: the sums were taken in another order. */
function expectSame(actual: BanditStatistics, rows: readonly DecisionRow[]): void {
  const expected = statisticsOf(rows, linear);
  expect([...actual.arms.keys()]).toEqual([...expected.arms.keys()]);
  expect(actual.decisions).toBe(expected.decisions);
  for (const [id, sums] of expected.arms) {
    const own = actual.arms.get(id)!;
    expect(own.count).toBe(sums.count);
    expect(own.sum).toBeCloseTo(sums.sum, 9);
    for (const [i, each] of sums.gram.entries()) expect(own.gram[i]).toBeCloseTo(each, 9);
    for (const [i, each] of sums.response.entries()) expect(own.response[i]).toBeCloseTo(each, 9);
  }
}

describe("the state of a bandit", () => {
  test("is the sum over all decisions, however they were cut, in whatever order, by processes that saw old state", async () => {
    const round = fc.record({
      picked: fc.uniqueArray(fc.integer({ min: 0, max: ROWS.length - 1 }), { minLength: 1, maxLength: 20 }),
      stale: fc.boolean(),
    });
    await fc.assert(
      fc.asyncProperty(
        fc.array(round, { maxLength: 6 }),
        fc.constantFrom(2, 32),
        async (rounds, mostIncrements) => {
          const store = memoryStore();
          for (const { picked, stale } of rounds) {
            const some = picked.map((i) => ROWS[i]!);
            // If stale: a process that read the increments before any were written.
            await update(store, some, { mostIncrements }, stale ? [] : undefined);
          }
          const { statistics, units } = await update(store, ROWS, { mostIncrements });
          expectSame(statistics, ROWS);
          expect(units).toEqual(new Set(ROWS.map((row) => unitOf(row.id))));
        },
      ),
      { numRuns: 40 },
    );
  });

  test("does not change when nothing is new, and nothing is written", async () => {
    const store = memoryStore();
    const first = await update(store, ROWS);
    const before = await incrementsIn(store);
    const again = await update(store, [...ROWS].reverse());
    expect(again).toMatchObject({ added: 0, digest: first.digest });
    expect(await incrementsIn(store)).toEqual(before);
    expect(first.added).toBe(ROWS.length);
  });

  test("of two processes that count the same decisions is one record", async () => {
    const store = memoryStore();
    await update(store, ROWS, {}, []);
    await update(store, ROWS, {}, []);
    expect(new Set(await incrementsIn(store)).size).toBe(1);
  });

  test("takes a late outcome when it comes, and the first outcome stands", async () => {
    const store = memoryStore();
    const late = { ...ROWS[0]!, reward: null };
    expect((await update(store, [late, ...ROWS.slice(1)])).added).toBe(ROWS.length - 1);
    expect((await update(store, ROWS)).added).toBe(1);
    const changed = ROWS.map((row) => ({ ...row, reward: 7 }));
    expectSame((await update(store, changed)).statistics, ROWS);
  });

  test("is merged into a snapshot past the limit, which stands for its parts", async () => {
    const store = memoryStore();
    for (let i = 0; i < 5; i++) await update(store, ROWS.slice(i * 10, i * 10 + 10), { mostIncrements: 4 });
    const state = await update(store, ROWS.slice(0, 50), { mostIncrements: 4 });
    expect(state.increments).toHaveLength(1);
    expect(state.added).toBe(0);
    expectSame(state.statistics, ROWS.slice(0, 50));
  });

  test("belongs to its filters and features: another definition begins anew", async () => {
    const store = memoryStore();
    await update(store, ROWS.slice(0, 10));
    const tally = await update(store, ROWS.slice(0, 4), { definition: { filters: {} } });
    expect(tally).toMatchObject({ added: 4, statistics: { size: 0, decisions: 4 } });
    const other = { definition: { filters: { family: "other" }, features: linear } };
    expect((await update(store, ROWS.slice(0, 3), other)).added).toBe(3);
  });

  test("without any outcome is refused", async () => {
    await expect(update(memoryStore(), [{ ...ROWS[0]!, reward: null }])).rejects.toThrow(
      "no decision has a reward",
    );
  });
});
