/** Tries settings of ridge, logistic and nearest questions on held-out rows, for each view of the questions.
 *  In: the rows, the folds, options. Out: the best settings of each family, and all tried settings. */
import { compactRows, pickRows } from "../rows/index.ts";
import { type Folds, type HeldOut, holdOut } from "./cross-validate.ts";
import { type ValueData, type ValueLearner, viewOf } from "./learners.ts";
import type { RidgePenalties } from "./solve-ridge.ts";
import type { View } from "./views.ts";

export type ValueKind = "auto" | "ridge" | "logistic" | "knn";

export interface LearnerOptions {
  readonly kind: ValueKind;
  /** λ of ridge and logistic (default: by cross-validation). */
  readonly l2?: number | undefined;
  /** Number of neighbours (default: by cross-validation). */
  readonly k?: number | undefined;
  readonly seed: bigint;
}

export type LinearLearner = Extract<ValueLearner, { kind: "ridge" | "logistic" }>;

/** The best settings of a family of learners, and all tried settings. */
export interface TriedFamily {
  readonly best: HeldOut;
  readonly all: readonly HeldOut[];
}

/** λ of ridge. Each solution is the start of the next. */
const PATH = [100, 30, 10, 3, 1];
const NEIGHBOURS = [5, 10, 40];
/** Logistic penalty that shrinks as much as penalty 1 in ridge: the curvature of the logistic loss is at most 1/4. */
export const LOGISTIC_PENALTY = 0.25;
/** Ratio of a candidate's penalty without a shared part to the tried penalty of the shared part. */
const SHARED = 3;

/** `auto` gives the best of every family a share. Each view of ridge is a family, because a mix of views is one linear
 *  model. A long log shows the value of pairs and measures, and ridge learns enough of it. Other views and logistic
 *  would double the time. */
export function tryFamilies(
  whole: ValueData,
  folds: Folds,
  { kind, l2, k, isLong }: LearnerOptions & { readonly isLong: boolean },
): TriedFamily[] {
  const picked = { ...whole, rows: pickRows(whole.rows, folds.rows) };
  const trials = new Map<View, ValueData>();
  const attempt = (learners: readonly ValueLearner[]): HeldOut[] => {
    const [first] = learners;
    if (first === undefined) return [];
    const data = trials.get(first.reads) ?? compacted(viewOf(picked, first));
    trials.set(first.reads, data);
    return holdOut(data, folds, learners);
  };
  const linear: readonly View[] = isLong || whole.views?.words === undefined ? ["all"] : ["words", "all"];
  const near: readonly View[] = whole.views?.raw === undefined ? linear : [...linear, "raw"];
  const ridges = () => linear.map((reads) => tryRidge(whole, { reads, l2, attempt }));
  const logistic = (reads: View) =>
    bestOf(
      attempt(
        penaltiesOf(l2, LOGISTIC_PENALTY).map((own) => ({ kind: "logistic", penalties: { own }, reads })),
      ),
    );
  const neighbours = (reads: View) =>
    bestOf(attempt((k === undefined ? NEIGHBOURS : [k]).map((each) => ({ kind: "knn", k: each, reads }))));
  switch (kind) {
    case "ridge":
      return [joined(ridges())];
    case "logistic":
      return [joined(linear.map(logistic))];
    case "knn":
      return [joined(near.map(neighbours))];
    case "auto": {
      const ridge = ridges();
      const both = [...ridge, joined(near.map(neighbours))];
      return isLong
        ? both
        : [...both, bestOf(attempt([asLogistic(joined(ridge).best.learner as LinearLearner)]))];
    }
    default:
      return kind satisfies never;
  }
}

export function bestOf(all: readonly HeldOut[]): TriedFamily {
  return { best: all.reduce((best, each) => (each.error < best.error ? each : best)), all };
}

/** Words of other rows have weight 0 in every fold. Without their columns the solvers' vectors are short. */
function compacted(data: ValueData): ValueData {
  return { ...data, rows: compactRows(data.rows).rows };
}

function joined(families: readonly TriedFamily[]): TriedFamily {
  return { best: bestOf(families.map(({ best }) => best)).best, all: families.flatMap(({ all }) => all) };
}

function penaltiesOf(l2: number | undefined, scale: number): number[] {
  return l2 === undefined ? PATH.map((own) => scale * own) : [l2];
}

/** Separate candidates first, then with a shared part, which helps if each candidate has few outcomes. */
function tryRidge(
  { arms, outcomes }: ValueData,
  {
    reads,
    l2,
    attempt,
  }: { reads: View; l2: number | undefined; attempt: (learners: readonly ValueLearner[]) => HeldOut[] },
): TriedFamily {
  const ridge = (penalties: RidgePenalties): ValueLearner => ({ kind: "ridge", penalties, reads });
  const apart = attempt(penaltiesOf(l2, 1).map((own) => ridge({ own })));
  if (l2 !== undefined || arms < 3 || outcomes.full) return bestOf(apart);
  const { own } = (bestOf(apart).best.learner as LinearLearner).penalties;
  const shared = [own, SHARED * own].map((each) => ridge({ own: each, shared: own / SHARED }));
  return bestOf([...apart, ...attempt(shared)]);
}

/** Logistic with penalties that match those of ridge, and without a shared part. */
function asLogistic({ penalties: { own, shared }, reads }: LinearLearner): LinearLearner {
  const alone = shared === undefined ? own : SHARED * shared;
  return { kind: "logistic", penalties: { own: LOGISTIC_PENALTY * alone }, reads };
}
