/** Checks the judge's promises over many logs of a world with known values: a worse policy passes the gate at most as
 *  often as alpha, floors keep their risk, intervals cover the truth. One trial is one claim, held or not. */
import { digestJson } from "../../src/base/digest.ts";
import { rngFrom } from "../../src/base/rng.ts";
import { toLoggedRow } from "../../src/convert/routing-jsonl.ts";
import {
  calibrateFloor,
  EvaluationData,
  type GatedCandidate,
  type GateRule,
  gatePolicies,
  type JudgedRow,
  routed,
  routerOf,
  toJudgedRows,
} from "../../src/judge/index.ts";
import { correctedInterval, difference } from "../../src/judge/ope/index.ts";
import { type DecisionPolicy, parseStaticTable } from "../../src/policy/index.ts";
import { qualityOf, routingWorld, truth } from "../../test/support/routing-world.ts";
import {
  falsePasses,
  hulls,
  power,
  coverage as rareCoverage,
  type Share,
} from "../support/judge/rare-claims.ts";
import type { Campaign } from "../support/programs.ts";

const ALPHA = 0.05;
const MARGIN = 0.05;
const RISK = 0.1;

interface Claim {
  readonly claim: string;
  readonly logs: number;
  readonly figure: number;
  readonly bar: string;
  readonly held: boolean;
}

export const campaign: Campaign = {
  summary: "promises of the judge on known worlds: worse policies at the gate, peeking, floors, coverage",
  selectable: true,
  async run({ scale, seed, only }) {
    const logs = (full: number) => Math.max(4, Math.round(full * scale));
    const from = Number(seed % 1_000_000n) * 1_000_000;
    const isWanted = (name: string) => only === undefined || name.includes(only);
    const make = (name: string, claim: (name: string) => Claim) => (isWanted(name) ? [claim(name)] : []);
    const claims = [
      ...make("a policy worse by the margin passes one gate", (name) =>
        passRate(name, logs(2000), (r) => gate(world(300, from + r))),
      ),
      ...make("one of six such policies passes, corrected", (name) =>
        passRate(name, logs(400), (r) =>
          range(6).some((i) => gate(world(300, from + 10_000 + 6 * r + i), { tried: 6 })),
        ),
      ),
      ...make("it passes at one of ten looks, by confidence sequence", (name) =>
        passRate(name, logs(300), (r) => {
          const rows = world(1500, from + 20_000 + r);
          return range(10).some((look) => gate(rows.slice(0, 150 * (look + 1)), SEQUENCE));
        }),
      ),
      ...make("risk of floors set on 50 rows", (name) =>
        meanRisk(name, { logs: logs(2000), rows: 50, from: from + 30_000 }),
      ),
      ...make("risk of floors set on 500 rows", (name) =>
        meanRisk(name, { logs: logs(500), rows: 500, from: from + 40_000 }),
      ),
      ...make("95 % intervals of paired differences cover the truth", (name) =>
        coverage(name, logs(1000), from + 50_000),
      ),
      ...[
        ...falsePasses(logs(1000), from + 100_000, isWanted),
        ...power(logs(200), from + 200_000, isWanted),
        ...rareCoverage(logs(400), from + 300_000, isWanted),
        ...hulls(logs(1000), from + 400_000, isWanted),
      ].map(held),
    ];
    for (const { claim, figure, bar, logs: count, held } of claims)
      console.error(
        `  ${held ? "held" : "BROKEN"}: ${claim}: ${figure.toPrecision(3)}, ${bar}, over ${count} logs`,
      );
    const passed = claims.filter(({ held }) => held).length;
    return { passed, failed: claims.length - passed };
  },
};

const table = parseStaticTable("schema: rollbook.static-table.v1\ndefault: strong", "campaign");
const baseline = { policy: undefined, table, floor: 0, exploration: 0 };

/** Strong for sums; for proofs sometimes cheap, so that quality falls by exactly the margin. */
const SHARE = (2 * MARGIN) / (qualityOf(true, "strong") - qualityOf(true, "cheap"));
const edge = fieldOf("edge", (hard) => (hard ? 1 - SHARE : 1));
const wise = fieldOf("wise", (hard) => (hard ? 1 : 0));

const RULE: GateRule = {
  method: "student-t",
  alpha: ALPHA,
  tried: 1,
  epsilonQuality: MARGIN,
  epsilonCost: 0,
};
const SEQUENCE: Partial<GateRule> = {
  method: "confidence-sequence",
  propensityFloor: 0.4,
  ranges: { quality: { low: 0, high: 1 }, cost: { low: 0, high: 1 } },
};

function fieldOf(name: string, strong: (hard: boolean) => number) {
  const policy: DecisionPolicy = {
    family: "router",
    revision: { id: name as never, digest: digestJson("campaign", name) },
    answer: ({ prompt }) => {
      const p = strong(prompt.startsWith("Prove"));
      return { probabilities: [1 - p, p], confidence: 1 };
    },
  };
  return { policy, table, floor: 0.5, exploration: 0 };
}

function world(count: number, seed: number): readonly JudgedRow[] {
  return toJudgedRows(routingWorld(count, seed).map(toLoggedRow), "task").rows;
}

function gate(rows: readonly JudgedRow[], change: Partial<GateRule> = {}): boolean {
  const rule = { ...RULE, ...change };
  const [judged] = gatePolicies(rows, { rule, candidates: [edge], baseline, rng: rngFrom(1) });
  return (judged as GatedCandidate).outcome === "pass";
}

/** Compares with the bar, with a tolerance of three binomial errors of the trials. Medians have no tolerance. */
function held({ claim, logs, figure, wanted }: Share): Claim {
  const bar = "atMost" in wanted ? wanted.atMost : wanted.atLeast;
  const error = bar < 1 ? 3 * Math.sqrt((bar * (1 - bar)) / logs) : 0;
  return "atMost" in wanted
    ? { claim, logs, figure, bar: `≤ ${bar}`, held: figure <= bar + error }
    : { claim, logs, figure, bar: `≥ ${bar}`, held: figure >= bar - error };
}

/** The pass rate must be at most alpha, with a tolerance of three binomial errors of the trials. */
function passRate(claim: string, logs: number, passes: (log: number) => boolean): Claim {
  const figure = range(logs).filter(passes).length / logs;
  const bar = ALPHA + 3 * Math.sqrt((ALPHA * (1 - ALPHA)) / logs);
  return { claim, logs, figure, bar: `≤ ${ALPHA} (+ 3 errors: ${bar.toPrecision(2)})`, held: figure <= bar };
}

/** A policy that states its confidence and is right that often: the true risk of a floor λ is (1 − λ)²/2. */
function meanRisk(claim: string, { logs, rows, from }: { logs: number; rows: number; from: number }): Claim {
  const policy: DecisionPolicy = {
    ...wise.policy,
    answer: ({ fields }) => ({ probabilities: [1, 0], confidence: fields.sure as number }),
  };
  const risks = range(logs).map((log) => {
    const terms = { policy, table, propensityFloor: 0.4, range: { low: 0, high: 1 }, alpha: RISK };
    const { floor } = calibrateFloor(sureRows(rows, from + log), terms);
    return floor === null ? 0 : (1 - floor) ** 2 / 2;
  });
  const figure = mean(risks);
  const error = Math.sqrt(mean(risks.map((each) => (each - figure) ** 2)) / logs);
  return { claim, logs, figure, bar: `≤ ${RISK}`, held: figure <= RISK + 3 * error };
}

function sureRows(count: number, seed: number): JudgedRow[] {
  const rng = rngFrom(seed);
  return world(count, seed).map((row) => {
    const sure = rng.float();
    const cheap = rng.float() < 0.4;
    const quality = cheap && rng.float() >= sure ? 0 : 1;
    return {
      ...row,
      context: { prompt: "", fields: { sure } },
      chosen: cheap ? 0 : 1,
      propensity: cheap ? 0.4 : 0.6,
      measures: { ...row.measures, quality },
    };
  });
}

/** Coverage of the 95 % intervals of the paired reward difference, wise against the table. */
function coverage(claim: string, logs: number, from: number): Claim {
  const value = truth((hard) => (hard ? 1 : 0)).reward - truth(() => 1).reward;
  const covered = range(logs).filter((log) => {
    const data = new EvaluationData(world(400, from + log), { rng: rngFrom(1) });
    const worthOf = (setup: Parameters<typeof routerOf>[0]) =>
      data.value(Float64Array.from(data.target(routed(routerOf(setup)))), "reward");
    const { low, high } = correctedInterval(difference(worthOf(wise), worthOf(baseline)));
    return low <= value && value <= high;
  });
  const figure = covered.length / logs;
  const error = Math.sqrt((0.95 * 0.05) / logs);
  return {
    claim,
    logs,
    figure,
    bar: "≥ 0.93",
    held: figure >= 0.93 - 3 * error,
  };
}

const range = (count: number) => Array.from({ length: count }, (_, i) => i);
const mean = (values: readonly number[]) => values.reduce((sum, each) => sum + each, 0) / values.length;
