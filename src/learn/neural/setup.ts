/** The start and the end of every neural training. In: transitions, options. Out: the rows to train on and to hold out,
 *  with standardised inputs; and a policy model whose first layer has the standardisation folded in. */
import { type Json, type Rng, RollbookError } from "../../base/index.ts";
import {
  DEFAULT_FEATURES,
  decodeModel,
  encodeModel,
  type FeatureSpec,
  mlpMembers,
  type PolicyKind,
  type PolicyModel,
} from "../../policy/index.ts";
import { everyFieldOf, type LoggedRow } from "../rows/index.ts";
import { type Floats, type Mlp, type MlpShape, namedParameters, type TensorSpace } from "../tensor/index.ts";
import { CUT } from "./chain-columns.ts";
import { makeDenseBatch, type Standardisation, standardise } from "./dense-batch.ts";
import type { RowAccount } from "./report.ts";
import type { Transitions } from "./transitions.ts";
import { ready, type Work } from "./work.ts";

/** Few word buckets, because a network reads a dense vector; and every field. */
export function neuralSpec(rows: readonly LoggedRow[]): FeatureSpec {
  const prompts = rows.some(({ context }) => context.prompt !== "");
  return { ...DEFAULT_FEATURES, wordBuckets: prompts ? 256 : 0, fields: everyFieldOf(rows) };
}

export interface PreparedRows {
  readonly data: Transitions;
  readonly train: Int32Array;
  readonly held: Int32Array;
  readonly by: Standardisation;
  readonly account: RowAccount;
}

/** `chained`: leaves out rows whose successor is unknown, because they cannot teach. */
export function* prepare(
  data: Transitions,
  { holdout, chained, rng }: { holdout: number; chained: boolean; rng: Rng },
): Work<PreparedRows> {
  const { count, next, unit, units, unlabelled } = data;
  const usable = Int32Array.from(next.keys()).filter((row) => !chained || next[row] !== CUT);
  const names = rng.split("holdout").shuffle([...units].sort());
  const away = new Set(names.slice(0, Math.min(names.length - 1, Math.round(names.length * holdout))));
  const isHeld = units.map((name) => away.has(name));
  const held = usable.filter((row) => isHeld[unit[row]!]!);
  const train = usable.filter((row) => !isHeld[unit[row]!]!);
  const [rows, cut] = [count + unlabelled, count - usable.length];
  if (train.length === 0)
    throw new RollbookError(
      "empty-split",
      { rows, usable: usable.length, held: held.length },
      `none of the ${rows} rows can teach: ${unlabelled} lack an outcome, ${cut} have no known successor, ${held.length} are held out. Log more, or lower --holdout.`,
    );
  const account = { rows, trained: train.length, heldOut: held.length, unlabelled, cut };
  return { data, train, held, by: yield* standardise(data, train), account };
}

interface ModelParts {
  readonly kind: PolicyKind;
  readonly shape: MlpShape;
  readonly spec: FeatureSpec;
  readonly arms: readonly string[];
  readonly config: Readonly<Record<string, Json>>;
  readonly by: Standardisation;
  /** The parameters of each member, in the network's layout. */
  readonly members: readonly Float32Array[];
}

export function networkModel({ kind, shape, spec, arms, config, by, members }: ModelParts): PolicyModel {
  const tensors: Record<string, PolicyModel["tensors"][string]> = {};
  members.forEach((values, m) => {
    const named = namedParameters(shape, values);
    foldIn(named.w0!.data as Float32Array, named.b0!.data as Float32Array, by);
    for (const [name, tensor] of Object.entries(named)) tensors[`m${m}.${name}`] = tensor;
  });
  const hidden = Object.fromEntries(shape.hidden.map((width, l) => [`hidden${l}`, width]));
  const settings = {
    ...{ members: members.length, layers: shape.hidden.length, ...hidden },
    ...{ tanh: shape.activation === "tanh" ? 1 : 0, temperature: 1 },
  };
  return { kind, spec, arms, config, settings, tensors };
}

/** W·((x − mean)·scale) + b as W′·x + b′. */
function foldIn(weights: Float32Array, bias: Float32Array, { mean, scale }: Standardisation): void {
  const outputs = bias.length;
  const shifted = Float64Array.from(bias);
  for (let i = 0; i < mean.length; i++)
    for (let o = 0; o < outputs; o++) {
      const weight = weights[i * outputs + o]! * scale[i]!;
      shifted[o] = shifted[o]! - weight * mean[i]!;
      weights[i * outputs + o] = weight;
    }
  bias.set(shifted);
}

/** The first network of a model after encoding and decoding: from a dense vector to outputs. */
export function readBack(model: PolicyModel): (vector: Float64Array) => Float64Array {
  const [forward] = mlpMembers(decodeModel(encodeModel(model), "the trained model"));
  return (values) => forward!({ values, count: values.length, indices: Int32Array.from(values.keys()) });
}

/** Number of rows that the read-back compares. */
const COMPARED = 64;

/** Largest difference of an output between the model, encoded and decoded, and the networks in memory. Relative to the
 *  output's size if that is above 1. */
export function* readBackError(
  space: TensorSpace,
  model: PolicyModel,
  {
    prepared: { data, train, by },
    net,
    members,
  }: { prepared: PreparedRows; net: Mlp; members: readonly Floats[] },
): Work<number> {
  const forwards = mlpMembers(decodeModel(encodeModel(model), "the trained model"));
  const compared = train.subarray(0, COMPARED);
  const { sparse, places } = yield* ready(data.states.block(compared));
  const { start, indices, values } = sparse;
  const batch = makeDenseBatch(space, { data, by, most: 1 });
  let worst = 0;
  for (const [r, row] of compared.entries()) {
    batch.rows[0] = row;
    yield* batch.load(1);
    const [from, to] = [start[places[r]!]!, start[places[r]! + 1]!];
    const state = {
      indices: indices.subarray(from, to),
      values: values.subarray(from, to),
      count: to - from,
    };
    members.forEach((parameters, m) => {
      const live = space.view(net.forward(batch.input, 1, parameters));
      forwards[m]!(state).forEach((output, a) => {
        worst = Math.max(worst, Math.abs(output - live[a]!) / Math.max(1, Math.abs(output)));
      });
    });
  }
  return worst;
}
