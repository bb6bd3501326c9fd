/** Judges a policy by whole chains of decisions: what an episode under it would earn.
 *  In: logged rows in chains, a router, a discount, an Rng. Out: for each contender the diagnostics and the estimators of
 *  chains (per-decision and weighted importance sampling, doubly robust, fitted Q evaluation) with intervals over
 *  episodes, or a refusal; differences paired by episode. Pure. Does not decide. */
import { compareUtf8, type Rng, RollbookError } from "../../base/index.ts";
import { armsOf, compareNatural, denseSpec, fieldsOf, type LoggedRow } from "../../learn/index.ts";
import { distribution, makeFeatureReader, type Router, type StaticTable } from "../../policy/index.ts";
import {
  difference,
  type Estimate,
  estimateOf,
  type Interval,
  judgePolicy,
  type LoggedDecisions,
  type PanelResult,
  standardError,
  studentInterval,
} from "../ope/index.ts";
import { type RouterSetup, routerOf } from "./contenders.ts";

export interface ChainContender {
  readonly name: string;
  readonly about: string;
  readonly panel: PanelResult;
}

export interface ChainComparison {
  readonly against: string;
  readonly value: number;
  readonly interval: Interval;
  readonly says: "better" | "worse" | "no difference shown";
}

export interface ChainEvaluation {
  readonly rows: number;
  readonly episodes: number;
  /** Decisions of the longest episode. */
  readonly horizon: number;
  readonly discount: number;
  /** The mean return of the log itself. */
  readonly behaviour: { readonly value: number; readonly standardError: number; readonly interval: Interval };
  /** The learned policy first. */
  readonly contenders: readonly ChainContender[];
  /** Of the learned policy, by doubly robust estimates of the same episodes. */
  readonly comparisons: readonly ChainComparison[];
}

export function evaluateChains(
  rows: readonly LoggedRow[],
  options: {
    readonly setup: RouterSetup;
    readonly single?: StaticTable | undefined;
    readonly discount: number;
    readonly rng: Rng;
    readonly level?: number;
  },
): ChainEvaluation {
  const { setup, single, discount, rng, level = 0.95 } = options;
  const ordered = inOrder(rows);
  const log = columnsOf(ordered, discount);
  const { table, exploration } = setup;
  const routers: [string, string, Router][] = [
    ["learned", "the policy above its floor, else the table", routerOf(setup)],
    ["static", "the static table", { table, floor: 0, exploration }],
  ];
  if (single !== undefined)
    routers.push([
      "single",
      "the candidate that was best in training",
      { table: single, floor: 0, exploration },
    ]);
  const contenders = routers.map(([name, about, router]): ChainContender => {
    const judged = withTarget(log, ordered, router);
    return { name, about, panel: judgePolicy(judged, { rng: rng.split("panel"), level }) };
  });
  const returns = returnsOf(log, discount);
  return {
    rows: rows.length,
    episodes: returns.units,
    horizon: log.chain!.step.reduce((most, step) => Math.max(most, step + 1), 0),
    discount,
    behaviour: {
      value: returns.value,
      standardError: standardError(returns),
      interval: studentInterval(returns, level),
    },
    contenders,
    comparisons: comparisonsOf(contenders, returns, level),
  };
}

/** Episodes by name, steps in order; a chain must be logged with probabilities and outcomes throughout. */
function inOrder(rows: readonly LoggedRow[]): readonly LoggedRow[] {
  for (const { id, propensity, reward } of rows)
    if (propensity === null || reward === null)
      throw new RollbookError(
        propensity === null ? "missing-propensity" : "unlabelled",
        { decision: id },
        `decision ${id} has no ${propensity === null ? "logged probability" : "reward"}, and a chain is judged as a whole. Leave its episode out.`,
      );
  return [...rows].sort((a, b) => compareUtf8(a.chain, b.chain) || compareNatural(a.id, b.id));
}

function columnsOf(rows: readonly LoggedRow[], discount: number): LoggedDecisions {
  const arms = armsOf(rows);
  const places = new Map(arms.map((id, a) => [id, a]));
  const episode = new Int32Array(rows.length);
  const step = new Int32Array(rows.length);
  rows.forEach((row, r) => {
    const goesOn = r > 0 && rows[r - 1]!.chain === row.chain;
    episode[r] = r === 0 ? 0 : episode[r - 1]! + (goesOn ? 0 : 1);
    step[r] = goesOn ? step[r - 1]! + 1 : 0;
  });
  const reader = makeFeatureReader(denseSpec(fieldsOf(rows)));
  const values = new Float64Array(rows.length * reader.size);
  rows.forEach((row, r) => {
    const { indices, values: found, count } = reader.context(row.context);
    for (let e = 0; e < count; e++) values[r * reader.size + indices[e]!] = found[e]!;
  });
  return {
    reward: Float64Array.from(rows, ({ reward }) => reward!),
    behaviour: Float64Array.from(rows, ({ propensity }) => propensity!),
    target: new Float64Array(rows.length),
    candidates: {
      count: arms.length,
      chosen: Int32Array.from(rows, (row) => places.get(row.candidates[row.chosen]!.id)!),
      target: new Float64Array(rows.length * arms.length),
    },
    context: { width: reader.size, values },
    ...{ episode, chain: { step, discount } },
  };
}

function withTarget(log: LoggedDecisions, rows: readonly LoggedRow[], router: Router): LoggedDecisions {
  const { count, chosen } = log.candidates!;
  const places = new Map(armsOf(rows).map((id, a) => [id, a]));
  const target = new Float64Array(rows.length * count);
  rows.forEach((row, r) => {
    distribution(row.context, row.candidates, router).probabilities.forEach((share, c) => {
      target[r * count + places.get(row.candidates[c]!.id)!] = share;
    });
  });
  return {
    ...log,
    target: Float64Array.from(chosen, (a, r) => target[r * count + a]!),
    candidates: { ...log.candidates!, target },
  };
}

/** Σ γᵗ·r per episode of the log. */
function returnsOf({ reward, episode, chain }: LoggedDecisions, discount: number): Estimate {
  const returns = new Float64Array(episode!.at(-1)! + 1);
  let factor = 1;
  reward.forEach((each, r) => {
    factor = chain!.step[r] === 0 ? 1 : factor * discount;
    returns[episode![r]!] = returns[episode![r]!]! + factor * each;
  });
  return estimateOf("mean", [{ top: returns, bottom: undefined }]);
}

function comparisonsOf(
  [learned, ...others]: readonly ChainContender[],
  returns: Estimate,
  level: number,
): ChainComparison[] {
  const mine = doublyRobustOf(learned!);
  if (mine === undefined) return [];
  const theirs: [string, Estimate | undefined][] = [
    ...others.map((other): [string, Estimate | undefined] => [other.name, doublyRobustOf(other)]),
    ["behaviour", returns],
  ];
  return theirs.flatMap(([against, estimate]) => {
    if (estimate === undefined) return [];
    const gap = difference(mine, estimate);
    const interval = studentInterval(gap, level);
    const says = interval.low > 0 ? "better" : interval.high < 0 ? "worse" : "no difference shown";
    return [{ against, value: gap.value, interval, says } as const];
  });
}

function doublyRobustOf({ panel }: ChainContender): Estimate | undefined {
  if (panel.kind === "refused") return undefined;
  return panel.rows.find(({ estimate }) => estimate.name === "chain DR")?.estimate;
}
