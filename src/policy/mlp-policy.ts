/** Answers of neural policies: `mlp-greedy` takes the candidate of the highest value, `mlp-softmax` draws from its
 *  distribution. In: a model with layers `w0`, `b0`, … (an ensemble: `m0.w0`, …). Out: answers.
 *  A wide-and-deep network also has a linear part with the tensors of a value policy; its feature spec is
 *  `config.wide`. The forward pass uses float64, the float32 weights and an exact exp, so a question has one answer on
 *  every engine. A candidate that the model has never seen gets probability 0. If the model knows no candidate, its
 *  confidence is 0. */
import { exp, RollbookError, softmax } from "../base/index.ts";
import type { PolicyModel } from "./checkpoint.ts";
import type { DecisionContext, DecisionPolicy } from "./decision.ts";
import { layOut, parseAnySpec, type ValueSpec } from "./feature-spec.ts";
import { makeFeatureReader, type SparseVector } from "./features.ts";
import { armIndex, evenAnswer, firstSpecOf } from "./model-parts.ts";
import { openValueModel } from "./value/index.ts";

export function mlpPolicy(model: PolicyModel): DecisionPolicy["answer"] {
  const { arms, settings } = model;
  const outputsOf = mlpOutputs(model);
  const known = armIndex(arms);
  const sharpness = 1 / (settings.temperature ?? 1);
  const greedy = model.kind === "mlp-greedy";
  return (context, candidates) => {
    const places = candidates.map(({ id, selectable }) => (selectable ? (known.get(id) ?? -1) : -1));
    if (places.every((place) => place < 0)) return evenAnswer(candidates);
    const outputs = outputsOf(context);
    const shares = meanShares(outputs, { places, sharpness });
    const confidence = shares.reduce((most, each) => Math.max(most, each), 0);
    if (!greedy) return { probabilities: Array.from(shares), confidence };
    const values = places.map((place) => meanOutput(outputs, place));
    const best = values.reduce((top, each, c) => (each > values[top]! ? c : top), 0);
    return { probabilities: candidates.map((_, c) => (c === best ? 1 : 0)), confidence: shares[best]! };
  };
}

/** The outputs of every member for a question, one per arm: values or logits. */
export function mlpOutputs(model: PolicyModel): (context: DecisionContext) => Float64Array[] {
  const reader = makeFeatureReader(firstSpecOf(model));
  const members = mlpMembers(model);
  const wide = widePartOf(model);
  return (context) => {
    const input = reader.context(context);
    const outputs = members.map((forward) => forward(input));
    if (wide === undefined) return outputs;
    const linear = wide(context);
    return outputs.map((output) => output.map((value, a) => value + linear[a]!));
  };
}

/** The wide part of a network; undefined if it has none. */
export function widePartOf(model: PolicyModel): ((context: DecisionContext) => Float64Array) | undefined {
  const { wide } = model.config;
  if (wide === undefined) return undefined;
  return wideValues({ ...model, spec: parseAnySpec(wide, "the wide part of the policy") as ValueSpec });
}

/** The output of a network's wide part: a linear model with its own features, one number per arm. The array is valid
 *  until the next call. The network corrects these numbers. */
export function wideValues(
  part: Pick<PolicyModel, "arms" | "tensors" | "settings"> & { spec: ValueSpec },
): (context: DecisionContext) => Float64Array {
  return openValueModel({ ...part, kind: "value", config: {} }).predict;
}

/** The networks of a model, from features to outputs. */
export function mlpMembers(model: PolicyModel): ((input: SparseVector) => Float64Array)[] {
  const { settings, arms } = model;
  const hidden = Array.from({ length: settings.layers ?? 0 }, (_, l) => settings[`hidden${l}`]!);
  const widths = [layOut(firstSpecOf(model)).size, ...hidden, arms.length];
  return Array.from({ length: settings.members ?? 1 }, (_, m) => {
    const layers = widths.slice(1).map(
      (outputs, l): MlpLayer => ({
        weights: float32(model, `m${m}.w${l}`, [widths[l]!, outputs]),
        bias: float32(model, `m${m}.b${l}`, [outputs]),
      }),
    );
    return (input) => forward(layers, input, settings.tanh === 1 ? tanh : relu);
  });
}

/** The mean over the members; −∞ for an unknown arm. */
export function meanOutput(outputs: readonly Float64Array[], arm: number): number {
  if (arm < 0) return Number.NEGATIVE_INFINITY;
  return outputs.reduce((sum, output) => sum + output[arm]!, 0) / outputs.length;
}

interface MlpLayer {
  readonly weights: Float32Array;
  readonly bias: Float32Array;
}

function forward(layers: readonly MlpLayer[], input: SparseVector, activate: (x: number) => number) {
  let x = addRows(layers[0]!, input);
  for (const layer of layers.slice(1)) {
    const values = x.map(activate);
    x = addRows(layer, { values, count: values.length });
  }
  return x;
}

/** bias + Σ value · row of the weights, row by row. Without indices the rows are 0, 1, 2 … */
function addRows(
  { weights, bias }: MlpLayer,
  { indices, values, count }: Omit<SparseVector, "indices"> & { indices?: Int32Array },
): Float64Array {
  const out = Float64Array.from(bias);
  for (let e = 0; e < count; e++) {
    const value = values[e]!;
    if (value === 0) continue;
    const at = (indices === undefined ? e : indices[e]!) * out.length;
    for (let o = 0; o < out.length; o++) out[o] = out[o]! + value * weights[at + o]!;
  }
  return out;
}

const relu = (x: number): number => Math.max(0, x);
const tanh = (x: number): number => 1 - 2 / (exp(2 * x) + 1);

/** The mean over the members of each member's softmax over the candidates. */
function meanShares(
  outputs: readonly Float64Array[],
  { places, sharpness }: { places: readonly number[]; sharpness: number },
): Float64Array {
  const mean = new Float64Array(places.length);
  for (const output of outputs) {
    const shares = softmax(
      Float64Array.from(places, (place) =>
        place < 0 ? Number.NEGATIVE_INFINITY : sharpness * output[place]!,
      ),
    );
    for (let c = 0; c < mean.length; c++) mean[c] = mean[c]! + shares[c]! / outputs.length;
  }
  return mean;
}

function float32({ tensors, kind }: PolicyModel, name: string, shape: readonly number[]): Float32Array {
  const tensor = tensors[name];
  if (tensor?.data instanceof Float32Array && String(tensor.shape) === String(shape)) return tensor.data;
  throw new RollbookError(
    "bad-checkpoint",
    { tensor: name, expected: shape, actual: tensor?.shape ?? null },
    `a ${kind} policy needs the tensor ${name} of shape [${shape}] in F32, the checkpoint has ${tensor === undefined ? "none" : `[${tensor.shape}]`}. Train again.`,
  );
}
