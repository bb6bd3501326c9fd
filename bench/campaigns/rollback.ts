/** Automatic rollback over many streams with known truth. An equally good router is rolled back at most as often as
 *  alpha, and a loss of 0.1 is found within 2 000 decisions. The watch checks after every outcome.
 *  One trial is one stream. */
import { type Rng, rngFrom } from "../../src/base/rng.ts";
import { type HarmRule, HarmWatch, type RoutedOutcome } from "../../src/serve/index.ts";
import type { Campaign } from "../support/programs.ts";

const DECISIONS = 2000;
const LOSS = 0.1;
const STREAMS = 1000;
const FOUND = 0.9;
const RULE: HarmRule = { alpha: 0.05, margin: 0, range: { low: 0, high: 1 }, comparedWith: "record" };

/** Draws an outcome with the given mean. */
type Law = (mean: number, rng: Rng) => number;
const LAWS: Readonly<Record<string, { readonly mean: number; readonly draw: Law }>> = {
  "solved or not, mean 0.6": { mean: 0.6, draw: (mean, rng) => (rng.float() < mean ? 1 : 0) },
  "solved or not, mean 0.9": { mean: 0.9, draw: (mean, rng) => (rng.float() < mean ? 1 : 0) },
  "graded, mean 0.5": { mean: 0.5, draw: (mean, rng) => mean + (rng.float() - 0.5) * 0.6 },
};

interface Claim {
  readonly claim: string;
  readonly streams: number;
  readonly taken: number;
  readonly held: boolean;
  /** Decisions until harm was found, in the median stream. */
  readonly median: number | undefined;
}

export const campaign: Campaign = {
  summary: "rollback: false ones on equal streams, and a loss of 0.1 within 2 000 decisions",
  async run({ scale, seed }) {
    const streams = Math.max(20, Math.round(STREAMS * scale));
    const claims = Object.entries(LAWS).flatMap(([name, { mean, draw }]) => [
      claimOn(`${name}: equal streams`, { streams, seed, draw, before: mean, fresh: mean }),
      claimOn(`${name}: a loss of ${LOSS}`, { streams, seed, draw, before: mean, fresh: mean - LOSS }),
    ]);
    for (const { claim, taken, streams: count, held, median } of claims)
      console.error(
        `  ${held ? "held" : "BROKEN"}: ${claim}: ${taken} of ${count} taken back${median === undefined ? "" : `, the middle one after ${median} decisions`}`,
      );
    const passed = claims.filter(({ held }) => held).length;
    return { passed, failed: claims.length - passed };
  },
};

function claimOn(
  claim: string,
  options: { streams: number; seed: bigint; draw: Law; before: number; fresh: number },
): Claim {
  const { streams, seed, draw, before, fresh } = options;
  const found: number[] = [];
  for (let i = 0; i < streams; i++) {
    const rng = rngFrom(seed).split(claim).split(i);
    const at = firstHarm({
      before: outcomes("before", { mean: before, from: 0, draw, rng: rng.split("before") }),
      fresh: outcomes("fresh", { mean: fresh, from: DECISIONS, draw, rng: rng.split("fresh") }),
    });
    if (at !== undefined) found.push(at);
  }
  const equal = before === fresh;
  const share = found.length / streams;
  const bar = equal ? RULE.alpha : FOUND;
  // Tolerance: three binomial errors of the trials.
  const error = 3 * Math.sqrt((bar * (1 - bar)) / streams);
  const held = equal
    ? share <= bar + (streams < STREAMS ? error : 0)
    : share >= bar - (streams < STREAMS ? error : 0);
  const median = equal ? undefined : found.sort((a, b) => a - b)[found.length >> 1];
  return { claim, streams, taken: found.length, held, median };
}

/** Number of decisions until the watch finds harm; it is asked after every decision. */
function firstHarm({
  before,
  fresh,
}: {
  before: readonly RoutedOutcome[];
  fresh: readonly RoutedOutcome[];
}): number | undefined {
  const watch = new HarmWatch(RULE);
  watch.offer({ fresh: [], before });
  for (const [i, outcome] of fresh.entries()) if (watch.offer({ fresh: [outcome], before: [] })) return i + 1;
  return undefined;
}

function outcomes(
  name: string,
  { mean, from, draw, rng }: { mean: number; from: number; draw: Law; rng: Rng },
): RoutedOutcome[] {
  return Array.from({ length: DECISIONS }, (_, i) => ({
    ...{ id: `${name}-${i}`, atMs: from + i, reward: draw(mean, rng) },
  }));
}
