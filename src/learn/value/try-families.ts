/** Tries settings of ridge, logistic and nearest questions on held-out rows.
 *  In: the rows of the trial, their folds, options. Out: the best settings of each family, and all that were tried. */
import { type Folds, type HeldOut, holdOut, leadOf } from "./cross-validate.ts";
import { BLOCKS } from "./fit-columns.ts";
import type { ValueData, ValueLearner, ValuePenalties } from "./learners.ts";

export type ValueKind = "auto" | "ridge" | "logistic" | "knn";

export interface LearnerOptions {
  readonly kind: ValueKind;
  /** λ of ridge and logistic (default: by cross-validation). */
  readonly l2?: number | undefined;
  /** Neighbours (default: by cross-validation). */
  readonly k?: number | undefined;
  readonly seed: bigint;
}

export type LinearLearner = Extract<ValueLearner, { kind: "ridge" | "logistic" }>;

/** Penalties of pairs of words and of the prompt's measures that leave the words to decide. Few rows show what words are worth
 *  and not what thousands of pairs are; the measures are dense, so that a light penalty lets them outweigh the words. */
export const WORDS = { pairs: 1000, measures: 100 } as const;
/** What is tried instead; of a long log, whose trials take long, the last ones alone. */
const MORE_THAN_WORDS = [
  { pairs: 1000, measures: 10 },
  { pairs: 1000, measures: 1 },
  { pairs: 10, measures: 10 },
  { pairs: 1, measures: 10 },
  { pairs: 1, measures: 1 },
] as const;
const TRIED_ON_LONG = 2;
/** Standard errors of the difference by which more than words must be better: the best of several is so by chance already. */
const LEAST_LEAD = 2;
/** Factors of the prompt's measures in the distance between two questions; of a long log the middle one alone. */
export const DISTANCES = [0.1, 0.3, 1] as const;
/** The penalty of a logistic model that shrinks as much as 1 does in ridge: the curvature of its loss is at most a quarter. */
export const LOGISTIC_PENALTY = 0.25;
/** A candidate's penalty without a shared part, over that of the shared part which is tried. */
const SHARED = 3;
interface TrialOptions extends LearnerOptions {
  readonly isLong: boolean;
}

/** The best settings of each family of learners, and all that were tried. */
export interface LearnerFamily {
  readonly best: HeldOut;
  readonly all: readonly HeldOut[];
}

/** `auto` gives the best of every family a share. Of a long log ridge learns enough, and logistic would take as long again. */
export function tryFamilies(data: ValueData, folds: Folds, options: TrialOptions): LearnerFamily[] {
  const { kind, isLong } = options;
  if (kind === "knn") return [tryNeighbours(data, folds, options)];
  if (kind === "ridge" || kind === "logistic") return [tryLinear(data, folds, { ...options, kind })];
  const ridge = tryLinear(data, folds, { ...options, kind: "ridge" });
  const near = tryNeighbours(data, folds, options);
  if (isLong) return [ridge, near];
  return [ridge, near, bestOf(holdOut(data, folds, [asLogistic(ridge.best.learner as LinearLearner)]))];
}

/** The penalty of words first, then whether pairs and measures are worth trusting, then whether the candidates share a part. */
function tryLinear(
  data: ValueData,
  folds: Folds,
  { kind, l2, isLong }: TrialOptions & { readonly kind: LinearLearner["kind"] },
): LearnerFamily {
  const attempt = (penalties: readonly ValuePenalties[]) =>
    holdOut(
      data,
      folds,
      penalties.map((each) => ({ kind, penalties: each })),
    );
  const present = presentBlocks(data);
  const scale = kind === "logistic" ? LOGISTIC_PENALTY : 1;
  const path = l2 === undefined ? [100, 30, 10, 3, 1].map((own) => scale * own) : [l2];
  const first = bestOf(attempt(path.map((own) => ({ own, ...trusted(present, WORDS) }))));
  const { own } = penaltiesOf(first.best);
  const others = attempt(moreThanWords(present, isLong).map((blocks) => ({ own, ...blocks })));
  if (others.length > 0 && l2 === undefined && !isLong) {
    const blocks = penaltiesOf(bestOf(others).best);
    others.push(...attempt([3 * own, own / 3].map((each) => ({ ...blocks, own: each }))));
  }
  let { best } = first;
  if (others.length > 0) {
    const other = bestOf(others).best;
    if (leadOf(data, folds, other, best) > LEAST_LEAD) best = other;
  }
  const shared = kind === "ridge" && l2 === undefined ? attempt(sharedVariants(data, penaltiesOf(best))) : [];
  return { best: bestOf([best, ...shared]).best, all: [...first.all, ...others, ...shared] };
}

function penaltiesOf({ learner }: HeldOut): ValuePenalties {
  return (learner as LinearLearner).penalties;
}

/** Which blocks occur in the rows. */
function presentBlocks({ blocks, rows }: ValueData): ReadonlySet<number> {
  if (blocks === undefined) return new Set();
  const seen = new Set<number>();
  for (const index of rows.indices) seen.add(blocks[index]!);
  return seen;
}

/** Without the factors of blocks that do not occur. */
function trusted(
  present: ReadonlySet<number>,
  { pairs, measures }: { readonly pairs: number; readonly measures: number },
): Pick<ValuePenalties, "pairs" | "measures"> {
  return {
    ...(present.has(BLOCKS.pair) ? { pairs } : {}),
    ...(present.has(BLOCKS.measure) ? { measures } : {}),
  };
}

function moreThanWords(
  present: ReadonlySet<number>,
  isLong: boolean,
): Pick<ValuePenalties, "pairs" | "measures">[] {
  const words = JSON.stringify(trusted(present, WORDS));
  const blocks = isLong ? MORE_THAN_WORDS.slice(-TRIED_ON_LONG) : MORE_THAN_WORDS;
  const all = blocks.map((each) => JSON.stringify(trusted(present, each)));
  return [...new Set(all)].filter((each) => each !== words).map((each) => JSON.parse(each));
}

function tryNeighbours(data: ValueData, folds: Folds, { k, isLong }: TrialOptions): LearnerFamily {
  const ks = k === undefined ? [5, 10, 40] : [k];
  const distances = isLong ? [DISTANCES[1]] : DISTANCES;
  const scales = presentBlocks(data).has(BLOCKS.measure) ? distances : [1];
  return bestOf(
    scales.flatMap((measures) =>
      holdOut(
        data,
        folds,
        ks.map((each) => ({ kind: "knn", k: each, measures })),
      ),
    ),
  );
}

/** Logistic with penalties that match those of ridge, each candidate by itself. */
function asLogistic({ penalties }: LinearLearner): LinearLearner {
  const { shared, own, ...blocks } = penalties;
  const alone = shared === undefined ? own : SHARED * shared;
  return { kind: "logistic", penalties: { ...blocks, own: LOGISTIC_PENALTY * alone } };
}

/** With a part that all candidates share: worth a try where each has few outcomes of its own. */
function sharedVariants({ arms, outcomes }: ValueData, penalties: ValuePenalties): ValuePenalties[] {
  if (arms < 3 || outcomes.full) return [];
  const { own } = penalties;
  return [own, 3 * own].map((each) => ({ ...penalties, own: each, shared: own / SHARED }));
}

export function bestOf(all: readonly HeldOut[]): LearnerFamily {
  return { best: all.reduce((best, each) => (each.error < best.error ? each : best)), all };
}
