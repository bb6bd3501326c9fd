/** Shared frame of every learner whose policy is a network: options, preparation, the loop, the model, the report.
 *  In: rows, options, a function that makes one learner. Out: a model with its report. The caller provides the
 *  algorithm. Training is `Work`: it waits for rows that are not in memory. */
import { type Digest, type Json, type Rng, RollbookError } from "../../base/index.ts";
import type { FeatureSpec, PolicyKind, PolicyModel } from "../../policy/index.ts";
import type { LoggedRow } from "../rows/index.ts";
import { type Mlp, makeMlp, openTensors, type TensorSpace } from "../tensor/index.ts";
import { type FitHooks, fitLearner, type GradientLearner, type HeldOutLoss } from "./fit.ts";
import { type NeuralReport, reportOf } from "./report.ts";
import { networkModel, neuralSpec, type PreparedRows, prepare, readBackError } from "./setup.ts";
import { inChains, type Transitions, transitionsOf } from "./transitions.ts";
import { fitWide, type WidePart } from "./wide.ts";
import type { Work } from "./work.ts";

/** Rows with the digest of their source. The training is a function of them. */
export interface LoggedData {
  readonly rows: readonly LoggedRow[];
  readonly digest: Digest;
}

export interface NeuralTrained {
  readonly model: PolicyModel;
  readonly report: NeuralReport;
}

export interface NetworkConfig {
  readonly spec?: FeatureSpec | undefined;
  readonly hidden?: readonly number[];
  readonly steps?: number;
  readonly batch?: number;
  /** The learning rate. */
  readonly rate?: number;
  /** Decoupled weight decay. */
  readonly decay?: number;
  /** Share of the tasks that are held out. */
  readonly holdout?: number;
  /** Steps between two points of the learning curve. */
  readonly every?: number;
  /** Points without a better held-out loss before training stops; 0: never. */
  readonly patience?: number;
  /** Number of networks that are trained separately and averaged. */
  readonly members?: number;
}

export const NETWORK_DEFAULTS = {
  hidden: [256, 256] as readonly number[],
  ...{ steps: 6000, batch: 64, rate: 3e-4, decay: 0, holdout: 0.1, every: 250, patience: 0, members: 1 },
};

/** A longer gradient is scaled down to this length. */
export const LONGEST_GRADIENT = 10;
/** Number of held-out rows per pass. */
export const EVALUATED = 256;

/** A learner whose steps and evaluations may wait for rows. */
export interface RowLearner extends GradientLearner {
  step(step: number): Work<number>;
  evaluate(): Work<HeldOutLoss | undefined>;
}

export interface MemberParts {
  readonly net: Mlp;
  readonly prepared: PreparedRows;
  readonly rng: Rng;
  /** The linear model that the network corrects. Without it, the network predicts alone. */
  readonly wide?: WidePart | undefined;
}

interface Frame {
  readonly algorithm: string;
  readonly kind: PolicyKind;
  readonly options: NetworkConfig & typeof NETWORK_DEFAULTS;
  /** True: rows whose successor is unknown are left out, because they cannot teach. */
  readonly chained: boolean;
  /** True if the network corrects a linear model. */
  readonly wide?: boolean;
  readonly rng: Rng;
  readonly hooks: FitHooks;
  /** Entries of the config beside the options. */
  readonly facts?: Readonly<Record<string, Json>>;
  member(space: TensorSpace, parts: MemberParts): RowLearner;
}

/** Training rows of a network, in memory or in a store that holds their states. */
export interface NetworkRows {
  readonly digest: Digest;
  /** The features used if the config states none. */
  defaultSpec(): FeatureSpec;
  transitions(spec: FeatureSpec): Transitions;
  /** The rows behind the transitions, in their order, if they are in memory. */
  ordered?(): readonly LoggedRow[];
}

export function rowsInMemory({ rows, digest }: LoggedData): NetworkRows {
  return {
    digest,
    defaultSpec: () => neuralSpec(rows),
    transitions: (spec) => transitionsOf(rows, spec),
    ordered: () => inChains(rows),
  };
}

export function* trainNetwork(rows: NetworkRows, frame: Frame): Work<NeuralTrained> {
  const { algorithm, kind, chained, rng, hooks, facts = {} } = frame;
  const { spec = rows.defaultSpec(), ...options } = frame.options;
  const { hidden, steps, batch, rate, every, patience, members, holdout, decay } = options;
  const layers = Object.fromEntries(hidden.map((width, l) => [`hidden[${l}]`, width]));
  checkConfig({
    counts: { steps, batch, every, members, ...layers },
    shares: { holdout },
    atLeast0: { rate, decay, patience },
  });
  const prepared = yield* prepare(rows.transitions(spec), { holdout, chained, rng });
  const { data, train, by, account } = prepared;
  const shape = { inputs: data.states.size, hidden, outputs: data.arms.length, activation: "relu" as const };
  const wide = frame.wide ? fitWide(orderedRows(rows), prepared, rng.split("wide")) : undefined;
  const space = openTensors();
  const net = makeMlp(space, shape, Math.max(batch, EVALUATED));
  const learners = Array.from({ length: members }, (_, m) =>
    frame.member(space, { net, prepared, rng: rng.split(`member ${m}`), wide }),
  );
  const config = {
    ...{ algorithm, data: rows.digest, ...options, hidden: [...hidden], ...facts },
    ...(wide === undefined ? {} : { wide: wide.spec as unknown as Json }),
  };
  const identity = { config, spec: spec as unknown as Json, seed: rng.split("identity").u32() };
  const fitted = yield* fitLearner(space, ensembleOf(learners), {
    ...{ steps, every, patience, identity, ...hooks },
  });
  const vectors = learners.map(({ parameters }) => parameters[0]!);
  const network = networkModel({
    ...{ kind, shape, spec, arms: data.arms, by, config },
    members: vectors.map((block) => space.view(block)),
  });
  const model = {
    ...network,
    settings: { ...network.settings, ...wide?.settings },
    tensors: { ...network.tensors, ...wide?.tensors },
  };
  const reproduced = Math.max(
    yield* readBackError(space, model, { prepared, net, members: vectors }),
    wide?.readBackError(model) ?? 0,
  );
  const wideBatch = wide === undefined ? undefined : batch;
  return { model, report: reportOf({ account, data, train, by, fitted, reproduced, chained, wideBatch }) };
}

function orderedRows({ ordered }: NetworkRows): readonly LoggedRow[] {
  if (ordered !== undefined) return ordered();
  throw new RollbookError(
    "bad-options",
    { wide: true },
    "a wide part reads the words of prompts, and a replay store holds none. Train from a book or a file, or without it.",
  );
}

/** Several learners as one learner with the mean of their losses. */
function ensembleOf(learners: readonly RowLearner[]): RowLearner {
  const mean = (values: readonly number[]) => values.reduce((sum, each) => sum + each, 0) / values.length;
  return {
    state: learners.flatMap(({ state }) => state),
    parameters: learners.flatMap(({ parameters }) => parameters),
    seek: (step) => {
      for (const learner of learners) learner.seek(step, undefined);
    },
    *step(step) {
      const losses: number[] = [];
      for (const learner of learners) losses.push(yield* learner.step(step));
      return mean(losses);
    },
    *evaluate() {
      const found: (HeldOutLoss | undefined)[] = [];
      for (const learner of learners) found.push(yield* learner.evaluate());
      if (found[0] === undefined) return undefined;
      return Object.fromEntries(
        Object.keys(found[0]).map((key) => [key, mean(found.map((each) => each![key]!))]),
      ) as unknown as HeldOutLoss;
    },
  };
}

/** Refuses invalid numbers before the training starts. */
export function checkConfig(numbers: {
  readonly counts: Readonly<Record<string, number>>;
  readonly shares: Readonly<Record<string, number>>;
  readonly atLeast0: Readonly<Record<string, number>>;
}): void {
  const bad = (name: string, value: number, what: string) =>
    new RollbookError("bad-options", { [name]: value }, `${name} is ${value}: give ${what}.`);
  for (const [name, value] of Object.entries(numbers.counts))
    if (!Number.isSafeInteger(value) || value < 1) throw bad(name, value, "a whole number above 0");
  for (const [name, value] of Object.entries(numbers.shares))
    if (!(value >= 0 && value <= 1)) throw bad(name, value, "a number in 0 … 1");
  for (const [name, value] of Object.entries(numbers.atLeast0))
    if (!(value >= 0 && Number.isFinite(value))) throw bad(name, value, "a number of 0 or more");
}
