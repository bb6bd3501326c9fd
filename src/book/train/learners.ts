/** Offers the trainers of a book with one call signature: rows and options in, a model out. */
import { type Digest, RollbookError, rngFrom } from "../../base/index.ts";
import {
  type BanditStatistics,
  type CqlConfig,
  type CscType,
  collectFields,
  type DecisionRow,
  denseSpec,
  everyFieldOf,
  type FitHooks,
  type LoggedData,
  type LoggedPpoConfig,
  linUcbModel,
  type NeuralBcConfig,
  type StoredLearner,
  statisticsOf,
  thompsonBetaModel,
  thompsonLinearModel,
  trainBc,
  trainCql,
  trainCsc,
  trainLoggedPpo,
  trainNeuralBc,
  trainValue,
  ucb1Model,
  type ValueKind,
} from "../../learn/index.ts";
import { DEFAULT_FEATURES, type FeatureSpec, type PolicyModel, type ValueSpec } from "../../policy/index.ts";

export type Learner =
  | { readonly kind: "ucb"; readonly exploration?: number }
  | { readonly kind: "linucb"; readonly alpha?: number; readonly spec?: FeatureSpec | undefined }
  | {
      readonly kind: "thompson";
      readonly form?: "beta" | "linear";
      readonly draws?: number;
      readonly floor?: number;
      readonly spec?: FeatureSpec | undefined;
    }
  | { readonly kind: "bc"; readonly l2?: number; readonly spec?: FeatureSpec | undefined }
  | {
      readonly kind: "csc";
      readonly type?: CscType | undefined;
      readonly rate?: number | undefined;
      readonly spec?: ValueSpec | undefined;
    }
  | {
      readonly kind: ValueKind;
      readonly l2?: number | undefined;
      readonly k?: number | undefined;
      readonly costWeight?: number | undefined;
      readonly meanCost?: number | undefined;
      readonly spec?: ValueSpec | undefined;
      /** Specification of the rows' embeddings. */
      readonly embedding?: ValueSpec["embedding"];
    }
  | ({ readonly kind: "neural-bc" } & NeuralBcConfig)
  | ({ readonly kind: "cql" } & CqlConfig)
  | ({ readonly kind: "ppo" } & LoggedPpoConfig);

/** A learner whose model is a function of sums: new decisions only add to its state. */
export type BanditLearner = Extract<Learner, { kind: "ucb" | "linucb" | "thompson" }>;

export interface Learned {
  readonly model: PolicyModel;
  readonly report?: object;
}

const BANDITS: readonly string[] = ["ucb", "linucb", "thompson"] satisfies BanditLearner["kind"][];
const KINDS: readonly Learner["kind"][] = [
  "auto",
  "ridge",
  "logistic",
  "knn",
  "csc",
  "ucb",
  "linucb",
  "thompson",
  "bc",
  "neural-bc",
  "cql",
  "ppo",
];

/** Plain JavaScript has no types, so a misspelt learner is refused before a batch is cut. */
export function requireLearner({ kind }: Learner): void {
  if (KINDS.includes(kind)) return;
  throw new RollbookError(
    "unknown-learner",
    { kind, known: KINDS },
    `there is no learner ${JSON.stringify(kind)}. Choose one of ${KINDS.join(", ")}.`,
  );
}

export function isBandit(learner: Learner): learner is BanditLearner {
  return BANDITS.includes(learner.kind);
}

/** True if the learner reads a row together with the rows that follow it in its chain. */
export function readsChains(learner: {
  readonly kind: string;
  readonly discount?: number | undefined;
}): boolean {
  return learner.kind === "cql" && (learner.discount ?? 0) > 0;
}

/** True if the learner can train from a replay store that does not fit into memory. */
export function isStoredLearner(learner: Learner): learner is StoredLearner {
  return learner.kind === "cql" || learner.kind === "neural-bc";
}

const VALUE_KINDS: readonly string[] = ["auto", "ridge", "logistic", "knn"] satisfies ValueKind[];

export function readsEmbeddings(learner: Learner): learner is Extract<Learner, { kind: ValueKind }> {
  return VALUE_KINDS.includes(learner.kind);
}

/** True if the learner reads the costs of decisions. */
export function weighsCost(learner: Learner): boolean {
  return readsEmbeddings(learner) && (learner.costWeight ?? learner.meanCost) !== undefined;
}

export function isLinear(learner: BanditLearner): boolean {
  return learner.kind === "linucb" || (learner.kind === "thompson" && learner.form === "linear");
}

export function specOf(learner: BanditLearner): FeatureSpec | undefined {
  return learner.kind === "ucb" ? undefined : learner.spec;
}

/** Derives the features of a linear bandit if none are given. */
export async function deriveSpec(rows: AsyncIterable<DecisionRow>): Promise<FeatureSpec> {
  return denseSpec(await collectFields(rows));
}

/** `hooks` apply to learners that train step by step. */
export function learn(data: LoggedData, learner: Learner, seed: bigint, hooks: FitHooks = {}): Learned {
  if (isBandit(learner)) return learnBandit(data, learner, seed);
  switch (learner.kind) {
    case "bc": {
      const { l2 = 3e-3, spec = { ...DEFAULT_FEATURES, fields: everyFieldOf(data.rows) } } = learner;
      return trainBc(data, { spec, seed, l2 });
    }
    case "neural-bc":
    case "cql": {
      const { kind, ...config } = learner;
      return (kind === "cql" ? trainCql : trainNeuralBc)(data, config, rngFrom(seed), hooks);
    }
    case "ppo": {
      const { kind: _, ...config } = learner;
      return trainLoggedPpo(data, config, rngFrom(seed), hooks);
    }
    case "csc":
      return trainCsc(data, learner);
    default:
      return trainValue(data, { ...learner, seed });
  }
}

function learnBandit(data: LoggedData, learner: BanditLearner, seed: bigint): Learned {
  const spec = isLinear(learner) ? (specOf(learner) ?? denseSpec(everyFieldOf(data.rows))) : undefined;
  return { model: banditModel(learner, statisticsOf(data.rows, spec), { data: data.digest, spec, seed }) };
}

/** `spec` is set if the learner is linear; `data` is the digest of the rows, or of the state in the book. */
export function banditModel(
  learner: BanditLearner,
  statistics: BanditStatistics,
  { data, spec, seed }: { data: Digest; spec: FeatureSpec | undefined; seed: bigint },
): PolicyModel {
  switch (learner.kind) {
    case "ucb":
      return ucb1Model(statistics, { exploration: learner.exploration ?? 0, data });
    case "linucb":
      return linUcbModel(statistics, { spec: spec!, alpha: learner.alpha ?? 0, data });
    case "thompson": {
      const { draws = 256, floor = 0.01 } = learner;
      const options = { draws, floor, seed: Number(seed & 0x1fffffffffffffn), data };
      if (spec === undefined) return thompsonBetaModel(statistics, options);
      return thompsonLinearModel(statistics, { ...options, spec });
    }
    default:
      return learner satisfies never;
  }
}
