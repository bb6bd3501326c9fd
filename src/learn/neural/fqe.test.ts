import { expect, test } from "vitest";
import { CELLS, corridorWalks, loggedRow } from "../../../test/support/chain-world.ts";
import { rngFrom } from "../../base/index.ts";
import { digestRows, type LoggedRow } from "../index.ts";
import { evaluateByFqe } from "./fqe.ts";

const rows = corridorWalks(300);
const data = { rows, digest: digestRows(rows) };
const config = { hidden: [64], steps: 3000, rate: 1e-3, targetEvery: 100, discount: 0.9, refits: 0 };

/** The exact value of moving right with probability p, from an even start: repeated expectation. */
function exactValue(p: number): number {
  let values = new Array<number>(CELLS).fill(0);
  for (let sweep = 0; sweep < 400; sweep++)
    values = values.map((_, cell) => {
      const right = cell === CELLS - 1 ? 1 : 0.9 * values[cell + 1]!;
      const left = cell === 0 ? 0.2 : 0.9 * values[cell - 1]!;
      return p * right + (1 - p) * left;
    });
  const starts = [...new Set(rows.map(({ chain }) => chain))].map((chain) =>
    cellOf(rows.find((row) => row.id === chain)!),
  );
  return starts.reduce((sum, cell) => sum + values[cell]!, 0) / starts.length;
}

function cellOf({ context }: LoggedRow): number {
  return Object.values(context.fields).indexOf(1);
}

test("the value of a stochastic policy is exact on a chain, to 0.01", () => {
  for (const p of [0.9, 0.3]) {
    const { value, episodes } = evaluateByFqe(data, () => [1 - p, p], config, rngFrom(1));
    expect(episodes).toBe(300);
    expect(Math.abs(value - exactValue(p)), `p = ${p}`).toBeLessThan(0.01);
  }
});

test("the interval comes from fits on resampled episodes and holds the value", () => {
  const { value, interval, refits } = evaluateByFqe(
    data,
    () => [0.5, 0.5],
    { ...config, steps: 600, refits: 8 },
    rngFrom(2),
  );
  expect(new Set(refits).size).toBe(8);
  expect(interval!.low).toBeLessThan(value + 0.05);
  expect(interval!.high).toBeGreaterThan(value - 0.05);
});

test("refits vary as resampled episodes do, not as seeds alone", () => {
  // 20 episodes of one step; half pay 1. The mean of 20 drawn episodes has a standard deviation of √(0.25 / 20) =
  // 0.112.
  const coins = Array.from({ length: 20 }, (_, i) =>
    loggedRow({
      ...{ id: `coin-${i}/0/0`, chain: `coin-${i}/0/0`, task: `coin-${i}` },
      ...{ context: { prompt: "", fields: { side: 1 } }, chosen: i % 2, reward: i < 10 ? 1 : 0 },
    }),
  );
  const { refits } = evaluateByFqe(
    { rows: coins, digest: digestRows(coins) },
    () => [0.5, 0.5],
    { ...config, hidden: [8], steps: 300, discount: 0, refits: 40 },
    rngFrom(5),
  );
  const mean = refits.reduce((sum, each) => sum + each, 0) / refits.length;
  const deviation = Math.sqrt(refits.reduce((sum, each) => sum + (each - mean) ** 2, 0) / refits.length);
  expect(deviation).toBeGreaterThan(0.07);
  expect(deviation).toBeLessThan(0.18);
});
