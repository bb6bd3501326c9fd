/** Bootstrap over units. All estimates use the same draws, so their differences are paired.
 *  In: estimates of one log, an Rng. Out: replicates per estimate, and percentile intervals from them.
 *
 *  The default draws two-point weights (after Mammen, 1993): each unit counts HEAVY with probability 9/32, else LIGHT.
 *  Mean 1, variance 1 and skewness 0.97 match the first moments of the multinomial bootstrap's counts (1, 1, 1).
 *  A replicate is then a subset sum: four units share a table of 16 sums, and a look-up replaces four additions and
 *  four draws (the method of the four Russians). "multinomial" is Efron's scheme, for comparison. */
import { type Rng, RollbookError } from "../../../base/index.ts";
import type { Estimate } from "../estimators/index.ts";
import { quantile, RandomWords } from "../math/index.ts";
import { checkLevel, type Interval } from "./interval.ts";

interface BootstrapOptions {
  readonly rng: Rng;
  readonly replicates?: number;
  readonly draws?: "two-point" | "multinomial";
}

/** One array of replicate values per estimate, in draw order. */
export function bootstrap(estimates: readonly Estimate[], options: BootstrapOptions): Float64Array[] {
  const { rng, replicates = 1000, draws = "two-point" } = options;
  const units = commonUnits(estimates);
  const series = new Map<Float64Array, Float64Array>();
  for (const { ratios } of estimates) {
    for (const { top, bottom } of ratios) {
      series.set(top, new Float64Array(replicates));
      if (bottom !== undefined) series.set(bottom, new Float64Array(replicates));
    }
  }
  const counts = new Float64Array(replicates);
  const draw = draws === "two-point" ? drawTwoPoint : drawMultinomial;
  draw({ series, counts, units, rng });
  return estimates.map(({ ratios }) => {
    const values = new Float64Array(replicates);
    for (const { top, bottom } of ratios) {
      const above = series.get(top)!;
      const below = bottom === undefined ? counts : series.get(bottom)!;
      for (let r = 0; r < replicates; r++) values[r] = values[r]! + above[r]! / below[r]!;
    }
    return values;
  });
}

export function bootstrapInterval(
  estimate: Estimate,
  { level = 0.95, ...options }: BootstrapOptions & { level?: number },
): Interval {
  return percentileInterval(bootstrap([estimate], options)[0]!, level);
}

/** Percentiles with linear interpolation between order statistics. */
export function percentileInterval(replicates: Float64Array, level = 0.95): Interval {
  const alpha = checkLevel(level);
  const sorted = replicates.slice().sort();
  return {
    method: "bootstrap",
    level,
    low: quantile(sorted, alpha / 2),
    high: quantile(sorted, 1 - alpha / 2),
    guarantee: "asymptotic",
  };
}

interface Resampling {
  /** Maps unit values to their weighted sum per replicate. The draw fills the sums. */
  readonly series: ReadonlyMap<Float64Array, Float64Array>;
  readonly counts: Float64Array;
  readonly units: number;
  readonly rng: Rng;
}

const P = 9 / 32;
const HEAVY = 1 + Math.sqrt((1 - P) / P);
const LIGHT = 1 - Math.sqrt(P / (1 - P));

/** Units per chunk. 16 sums for each 4 units fill 32 KiB, so the tables stay in the first-level cache. */
const CHUNK = 1024;
const WORDS = CHUNK / 32;

function drawTwoPoint({ series, counts, units, rng }: Resampling): void {
  const table = new Float64Array((CHUNK / 4) * 16);
  const replicates = counts.length;
  const masks = new Int32Array(WORDS * replicates);
  for (let start = 0; start < units; start += CHUNK) {
    const size = Math.min(CHUNK, units - start);
    drawMasks({ masks, counts, size, words: new RandomWords(rng.split(start / CHUNK)) });
    for (const [values, sums] of series) {
      const total = fillTable(table, values, start, size);
      const words = Math.ceil(size / 32);
      for (let r = 0; r < replicates; r++) {
        sums[r] =
          sums[r]! + (LIGHT * total + (HEAVY - LIGHT) * subsetSum({ table, masks, from: r * WORDS, words }));
      }
    }
  }
}

/** Marks the heavy units of the chunk, 32 per word, for every replicate. Adds their weights to `counts`. */
function drawMasks({
  masks,
  counts,
  size,
  words,
}: {
  masks: Int32Array;
  counts: Float64Array;
  size: number;
  words: RandomWords;
}): void {
  const random = new Int32Array(WORDS * 5);
  const used = Math.ceil(size / 32);
  const lastMask = size % 32 === 0 ? -1 : (1 << (size % 32)) - 1;
  for (let r = 0; r < counts.length; r++) {
    words.fill(random);
    let heavy = 0;
    for (let w = 0; w < used; w++) {
      const at = w * 5;
      // 9/32 = 0.01001 in binary. From the last digit on: a 1 ORs a fair word in, a 0 ANDs one.
      let word = random[at]! & random[at + 1]! & random[at + 2]!;
      word = (word | random[at + 3]!) & random[at + 4]!;
      if (w === used - 1) word &= lastMask;
      masks[r * WORDS + w] = word;
      heavy += ones(word);
    }
    counts[r] = counts[r]! + (LIGHT * size + (HEAVY - LIGHT) * heavy);
  }
}

/** Fills in all 16 subset sums of each 4 units; returns the total. */
function fillTable(table: Float64Array, values: Float64Array, start: number, size: number): number {
  let total = 0;
  // Whole words only: units past the end count as 0.
  for (let group = 0; group < Math.ceil(size / 32) * 8; group++) {
    const base = group * 16;
    table[base] = 0;
    for (let bit = 0; bit < 4; bit++) {
      const i = group * 4 + bit;
      const value = i < size ? values[start + i]! : 0;
      total += value;
      for (let low = 0; low < 1 << bit; low++) table[base + (1 << bit) + low] = table[base + low]! + value;
    }
  }
  return total;
}

function subsetSum({
  table,
  masks,
  from,
  words,
}: {
  table: Float64Array;
  masks: Int32Array;
  from: number;
  words: number;
}): number {
  let even = 0;
  let odd = 0;
  for (let w = 0; w < words; w++) {
    const word = masks[from + w]!;
    const base = w * 128;
    even += table[base + (word & 15)]! + table[base + 32 + ((word >>> 8) & 15)]!;
    odd += table[base + 16 + ((word >>> 4) & 15)]! + table[base + 48 + ((word >>> 12) & 15)]!;
    even += table[base + 64 + ((word >>> 16) & 15)]! + table[base + 96 + ((word >>> 24) & 15)]!;
    odd += table[base + 80 + ((word >>> 20) & 15)]! + table[base + 112 + (word >>> 28)]!;
  }
  return even + odd;
}

function drawMultinomial({ series, counts, units, rng }: Resampling): void {
  const words = new RandomWords(rng);
  const random = new Int32Array(units);
  counts.fill(units);
  for (let r = 0; r < counts.length; r++) {
    words.fill(random);
    // Bias of the scaled draw: at most units / 2^32.
    for (let i = 0; i < units; i++) random[i] = Math.floor(((random[i]! >>> 0) / 4294967296) * units);
    for (const [values, sums] of series) {
      let sum = 0;
      for (let i = 0; i < units; i++) sum += values[random[i]!]!;
      sums[r] = sum;
    }
  }
}

function ones(word: number): number {
  word -= (word >>> 1) & 0x55555555;
  word = (word & 0x33333333) + ((word >>> 2) & 0x33333333);
  return Math.imul((word + (word >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24;
}

function commonUnits(estimates: readonly Estimate[]): number {
  const units = estimates[0]?.units ?? 0;
  const other = estimates.find((estimate) => estimate.units !== units);
  if (units > 0 && other === undefined) return units;
  throw new RollbookError(
    "not-paired",
    { units, other: other?.units },
    `a bootstrap needs estimates over the same units; got ${units} and ${other?.units ?? "none"}.`,
  );
}
