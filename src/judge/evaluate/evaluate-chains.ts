/** Judges a policy by whole chains of decisions: what an episode under it would earn.
 *  In: logged rows in chains, a router, a discount, an Rng. Out: for each contender the diagnostics and the estimators of
 *  chains (per-decision and weighted importance sampling, doubly robust, fitted Q evaluation) with intervals over
 *  units, or a refusal; differences paired by unit. Every unit counts once, as in the gate. Pure. Does not decide. */
import type { Rng } from "../../base/index.ts";
import type { LoggedRow, SplitUnit } from "../../learn/index.ts";
import type { Router, StaticTable } from "../../policy/index.ts";
import {
  CHAIN_DR,
  correctedInterval,
  difference,
  type Estimate,
  type Interval,
  judgePolicy,
  type PanelResult,
  standardError,
} from "../ope/index.ts";
import { chainColumns, inEpisodes, loggedReturns, withTarget } from "./chain-log.ts";
import { type RouterSetup, routerOf } from "./contenders.ts";

interface ChainContender {
  readonly name: string;
  readonly about: string;
  readonly panel: PanelResult;
}

interface ChainComparison {
  readonly against: string;
  readonly value: number;
  readonly interval: Interval;
  readonly says: "better" | "worse" | "no difference shown";
}

export interface ChainEvaluation {
  readonly rows: number;
  readonly episodes: number;
  /** Episodes that share a unit count as one. */
  readonly units: number;
  /** Decisions of the longest episode. */
  readonly horizon: number;
  readonly discount: number;
  /** The mean return of the log itself, over units. */
  readonly behaviour: { readonly value: number; readonly standardError: number; readonly interval: Interval };
  /** The learned policy first. */
  readonly contenders: readonly ChainContender[];
  /** Of the learned policy, by doubly robust estimates of the same units. */
  readonly comparisons: readonly ChainComparison[];
}

export function evaluateChains(
  rows: readonly LoggedRow[],
  options: {
    readonly setup: RouterSetup;
    readonly single?: StaticTable | undefined;
    readonly discount: number;
    readonly unit: SplitUnit;
    readonly rng: Rng;
    readonly level?: number;
    readonly judgeShare?: number;
  },
): ChainEvaluation {
  const { setup, single, discount, unit, rng, level = 0.95, judgeShare } = options;
  const ordered = inEpisodes(rows);
  const log = chainColumns(ordered, { discount, unit });
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
    return { name, about, panel: judgePolicy(judged, { rng: rng.split("panel"), level, judgeShare }) };
  });
  const returns = loggedReturns(log);
  return {
    rows: rows.length,
    episodes: log.episode!.at(-1)! + 1,
    units: returns.units,
    horizon: log.chain!.step.reduce((most, step) => Math.max(most, step + 1), 0),
    discount,
    behaviour: {
      value: returns.value,
      standardError: standardError(returns),
      interval: correctedInterval(returns, level),
    },
    contenders,
    comparisons: comparisonsOf(contenders, returns, level),
  };
}

function comparisonsOf(
  [learned, ...others]: readonly ChainContender[],
  returns: Estimate,
  level: number,
): ChainComparison[] {
  const mine = chainDrOf(learned!.panel);
  if (mine === undefined) return [];
  const theirs: [string, Estimate | undefined][] = [
    ...others.map((other): [string, Estimate | undefined] => [other.name, chainDrOf(other.panel)]),
    ["behaviour", returns],
  ];
  return theirs.flatMap(([against, estimate]) => {
    if (estimate === undefined) return [];
    const gap = difference(mine, estimate);
    const interval = correctedInterval(gap, level);
    const says = interval.low > 0 ? "better" : interval.high < 0 ? "worse" : "no difference shown";
    return [{ against, value: gap.value, interval, says } as const];
  });
}

/** The estimate that differences and gates of chains rest on; undefined where the panel has none. */
export function chainDrOf(panel: PanelResult): Estimate | undefined {
  if (panel.kind === "refused") return undefined;
  return panel.rows.find(({ estimate }) => estimate.name === CHAIN_DR)?.estimate;
}
