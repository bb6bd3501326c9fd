/** The gate on whole chains of decisions: passes a policy only if the log shows that an episode under it is not worth less.
 *  In: logged rows in chains, candidates, a baseline, a rule with a discount. Out: what `gatePolicies` returns. Pure.
 *
 *  Quality and cost are returns: Σ γᵗ over the decisions of an episode. Each is estimated by the doubly robust estimator of
 *  chains, paired with the baseline's by unit: support, estimates and bounds count the episodes of one unit as one. Bounds that hold for any number of
 *  rows are not offered: the range of a chain's weight grows as (1/p)ᴸ with its length L, and no such bound would ever pass. */
import { RollbookError } from "../base/index.ts";
import type { LoggedRow, SplitUnit } from "../learn/index.ts";
import type { Router } from "../policy/index.ts";
import {
  chainColumns,
  chainDrOf,
  checkData,
  inEpisodes,
  livenessOf,
  loggedReturns,
  type Measure,
  measuresIn,
  qualityOf,
  type RouterSetup,
  routerOf,
  toJudgedRows,
  withTarget,
} from "./evaluate/index.ts";
import {
  checkRule,
  explainCheck,
  type GatedCandidate,
  type GateOptions,
  gateCheck,
  jointReasons,
  levelOf,
  noCost,
  supportReasons,
} from "./gate.ts";
import {
  correctedInterval,
  type Estimate,
  judgePolicy,
  type LoggedDecisions,
  type PanelResult,
} from "./ope/index.ts";

interface ChainGateOptions extends GateOptions {
  readonly discount: number;
  /** Episodes that share this count as one. */
  readonly unit: SplitUnit;
}

export function gateChains(rows: readonly LoggedRow[], options: ChainGateOptions): GatedCandidate[] {
  const { rule, candidates, baseline } = options;
  checkRule(rule, candidates.length);
  if (rule.method !== "student-t") throw onlyStudent(rule.method);
  const log = chainLogOf(rows, options);
  const against = baseline === "behaviour" ? undefined : routerOf(baseline);
  return candidates.map((setup) => gateOne(log, setup, { ...options, against }));
}

interface ChainLog {
  readonly ordered: readonly LoggedRow[];
  readonly judged: ReturnType<typeof toJudgedRows>["rows"];
  /** The measures that are asked for, quality first, each with the columns whose reward it is. */
  readonly columns: ReadonlyMap<Measure, LoggedDecisions>;
}

function chainLogOf(rows: readonly LoggedRow[], { rule, discount, unit }: ChainGateOptions): ChainLog {
  const ordered = inEpisodes(rows);
  const judged = toJudgedRows(ordered, unit).rows;
  const known = measuresIn(judged);
  const asked = [qualityOf(known), ...(rule.epsilonCost === null ? [] : ["cost" as const])];
  if (!asked.every((measure) => known.includes(measure))) throw noCost(judged);
  const log = chainColumns(ordered, { discount, unit });
  const columns = asked.map((measure): [Measure, LoggedDecisions] => [
    measure,
    { ...log, reward: Float64Array.from(judged, ({ measures }) => measures[measure]!) },
  ]);
  return { ordered, judged, columns: new Map(columns) };
}

function gateOne(
  log: ChainLog,
  setup: RouterSetup,
  options: ChainGateOptions & { readonly against: Router | undefined },
): GatedCandidate {
  const { rule, against } = options;
  const panelsOf = (router: Router) =>
    [...log.columns].map(([measure, columns]): [Measure, PanelResult] => [
      measure,
      judgePolicy(withTarget(columns, log.ordered, router), {
        // As `evaluateChains` splits it: both commands give the same estimate.
        rng: options.rng.split("panel"),
        judgeShare: options.judgeShare,
      }),
    ]);
  const mine = panelsOf(routerOf(setup));
  const theirs = against === undefined ? undefined : panelsOf(against);
  const liveness = livenessOf(log.judged, setup);
  const reasons = [
    ...checkData(log.judged).flatMap(({ severity, message }) =>
      severity === "refuse" ? [`the log: ${message}`] : [],
    ),
    ...jointReasons(
      panelReasons("the candidate", mine),
      theirs === undefined ? [] : panelReasons("the baseline", theirs),
    ),
    ...(liveness.live > 0 ? [] : [`${liveness.warning}: there is nothing to release`]),
  ];
  const level = levelOf(rule);
  const checks =
    reasons.length > 0
      ? []
      : mine.map(([measure, panel], i) =>
          gateCheck(
            returnOf(panel),
            theirs === undefined ? loggedReturns(log.columns.get(measure)!) : returnOf(theirs[i]![1]),
            { measure, rule, intervalOf: (paired) => correctedInterval(paired, level) },
          ),
        );
  const all = [...reasons, ...checks.filter((each) => !each.clears).map((each) => explainCheck(each, rule))];
  const { effectiveSize, largestWeight, meanWeight, unsupported } = mine[0]![1].diagnostics;
  return {
    outcome: all.length === 0 ? "pass" : "refuse",
    ...{ reasons: all, checks, live: liveness.live },
    support: { effectiveSize, largestWeight, meanWeight, unsupportedMass: unsupported.mass },
  };
}

/** Weights are those of the choices, whatever is measured: a lack of support is said once. */
function panelReasons(who: string, panels: readonly [Measure, PanelResult][]): string[] {
  const found = panels.flatMap(([, panel]) =>
    supportReasons(
      who,
      panel.kind === "refused"
        ? { reasons: panel.reasons, disagreements: [] }
        : { reasons: [], disagreements: panel.disagreements },
    ),
  );
  return [...new Set(found)];
}

function returnOf(panel: PanelResult): Estimate {
  const found = chainDrOf(panel);
  if (found !== undefined) return found;
  throw new RollbookError(
    "no-chain",
    {},
    "the panel of a chain has no doubly robust estimate. Report a defect.",
  );
}

function onlyStudent(method: string): RollbookError {
  return new RollbookError(
    "bad-rule",
    { method },
    `${method} bounds are not offered for chains: the range of their weights grows with every decision. Use --method student-t.`,
  );
}
