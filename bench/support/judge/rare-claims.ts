/** Claims of the judge on logs with rare, sparse, heavy-tailed or duplicated outcomes, and its power on ordinary logs.
 *  In: number of logs, first seed. Out: one figure per claim, over the logs. */
import { rngFrom } from "../../../src/base/rng.ts";
import { costQualityOf, EvaluationData } from "../../../src/judge/evaluate/index.ts";
import { evaluatePolicy, gatePolicies, routerOf } from "../../../src/judge/index.ts";
import { bootstrapInterval } from "../../../src/judge/ope/index.ts";
import { HULL_WORLDS, hullLog, hullSetup, hullTruth } from "../../../test/support/hull-worlds.ts";
import {
  ALWAYS_NEW,
  ALWAYS_OLD,
  BETTER,
  COVERED,
  type RareWorld,
  rareLog,
  WORSE,
} from "../../../test/support/rare-worlds.ts";

export interface Share {
  readonly claim: string;
  readonly logs: number;
  readonly figure: number;
  readonly wanted: { readonly atMost: number } | { readonly atLeast: number };
}

const REPLICATES = 200;

/** True if the claims about a world of this name are selected. */
type Wanted = (name: string) => boolean;

/** The selected worlds, each with its first seed. The selection does not change the trials. */
function seeded<World extends { readonly name: string }>(
  worlds: readonly World[],
  from: number,
  isWanted: Wanted,
): { world: World; first: number }[] {
  return worlds.flatMap((world, w) => (isWanted(world.name) ? [{ world, first: from + 10_000 * w }] : []));
}

/** Pass rates of worse policies at the default gate. */
export function falsePasses(logs: number, from: number, isWanted: Wanted): Share[] {
  return seeded(WORSE, from, (name) => isWanted(`a worse policy passes: ${name}`)).map(
    ({ world, first }) => ({
      claim: `a worse policy passes: ${world.name}`,
      logs,
      figure: shareOf(logs, (log) => passes(world, first + log)),
      wanted: { atMost: 0.05 },
    }),
  );
}

/** Pass rates of policies with a gain of three margins. */
export function power(logs: number, from: number, isWanted: Wanted): Share[] {
  return seeded(BETTER, from, (name) => isWanted(`a policy better by three margins passes: ${name}`)).map(
    ({ world, first }) => ({
      claim: `a policy better by three margins passes: ${world.name}`,
      logs,
      figure: shareOf(logs, (log) => passes(world, first + log)),
      wanted: { atLeast: 0.8 },
    }),
  );
}

function passes(world: RareWorld & { readonly margin: number }, seed: number): boolean {
  const [judged] = gatePolicies(rareLog(world, seed), {
    rng: rngFrom(1),
    candidates: [ALWAYS_NEW],
    baseline: ALWAYS_OLD,
    rule: { method: "student-t", alpha: 0.05, tried: 1, epsilonQuality: world.margin, epsilonCost: null },
  });
  return judged!.outcome === "pass";
}

/** Coverage of certified values and differences, the share of refusals,
 *  and the width relative to the percentile bootstrap. */
export function coverage(logs: number, from: number, isWanted: Wanted): Share[] {
  return seeded(COVERED, from, (name) => isWanted(`intervals cover: ${name}`)).flatMap(({ world, first }) => {
    const widths: number[] = [];
    const gap = world.means.new - world.means.old;
    let [certified, value, paired] = [0, 0, 0];
    for (let log = 0; log < logs; log++) {
      const rows = rareLog(world, first + log);
      const found = evaluatePolicy(rows, { rng: rngFrom(1), setup: ALWAYS_NEW, replicates: REPLICATES });
      const [learned] = found.contenders;
      if (learned!.basis === "refused" || found.certification !== "certified") continue;
      certified++;
      const { estimate, intervals } = learned!.values.reward!;
      const { difference } = found.comparisons.find(({ against }) => against === "static")!;
      if (intervals.every((each) => holds(each, world.means.new))) value++;
      if (difference.intervals.every((each) => holds(each, gap))) paired++;
      const peer = bootstrapInterval(estimate, {
        rng: rngFrom(log),
        replicates: REPLICATES,
        draws: "multinomial",
      });
      widths.push((intervals[0]!.high - intervals[0]!.low) / (peer.high - peer.low));
    }
    const ordinary = world.name.startsWith("success .6");
    return [
      {
        claim: `intervals cover: ${world.name}`,
        logs: certified,
        figure: value / certified,
        wanted: { atLeast: 0.93 },
      },
      {
        claim: `intervals of differences cover: ${world.name}`,
        logs: certified,
        figure: paired / certified,
        wanted: { atLeast: 0.93 },
      },
      ...(ordinary
        ? [
            { claim: `refused: ${world.name}`, logs, figure: 1 - certified / logs, wanted: { atMost: 0.1 } },
            {
              claim: `median width over the bootstrap's: ${world.name}`,
              logs: certified,
              figure: median(widths),
              wanted: { atMost: 1.25 },
            },
          ]
        : []),
    ];
  });
}

/** Coverage of the areas under hulls, and of the policy's gain over the candidates. */
export function hulls(logs: number, from: number, isWanted: Wanted): Share[] {
  return seeded(HULL_WORLDS, from, (name) => isWanted(`hull bands cover: ${name}`)).flatMap(
    ({ world, first }) => {
      const truth = hullTruth(world);
      let [made, area, gain, shown] = [0, 0, 0, 0];
      for (let log = 0; log < logs; log++) {
        const data = new EvaluationData(hullLog(world, first + log), {
          rng: rngFrom(1),
          replicates: 20,
        });
        const frontier = costQualityOf(data, { router: routerOf(hullSetup(world)), quality: "reward" });
        const hull = "absent" in frontier ? undefined : frontier.hull;
        if (hull?.area?.band === undefined || hull.gain?.band === undefined) continue;
        made++;
        if (holds(hull.area.band, truth.all)) area++;
        if (holds(hull.gain.band, truth.gain)) gain++;
        if (hull.gain.band.low > 0) shown++;
      }
      return [
        {
          claim: `hull bands cover: ${world.name}`,
          logs: made,
          figure: area / made,
          wanted: { atLeast: 0.935 },
        },
        {
          claim: `bands of the hull's gain cover: ${world.name}`,
          logs: made,
          figure: gain / made,
          wanted: { atLeast: 0.935 },
        },
        ...(world.shows === true
          ? [
              {
                claim: `a gain of four errors is shown: ${world.name}`,
                logs: made,
                figure: shown / made,
                wanted: { atLeast: 0.8 },
              },
            ]
          : []),
      ];
    },
  );
}

function shareOf(logs: number, is: (log: number) => boolean): number {
  let count = 0;
  for (let log = 0; log < logs; log++) if (is(log)) count++;
  return count / logs;
}

const holds = ({ low, high }: { low: number; high: number }, value: number) => low <= value && value <= high;
const median = (values: number[]) => values.sort((a, b) => a - b)[values.length >> 1]!;
