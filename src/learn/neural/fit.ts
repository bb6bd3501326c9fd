/** The training loop of all neural learners: gradient steps, held-out evaluation, early stopping, progress, and
 *  resuming. In: a learner with its state in blocks, the length of the training. Out: the learning curve; the blocks
 *  hold the chosen weights. A step depends only on the state and the step's number. So a training that was killed and
 *  resumed from a saved state ends with the same bits as an uninterrupted one.
 *  Does not know the learner's algorithm. */
import { digestJson, type Json, RollbookError } from "../../base/index.ts";
import { decodeSafetensors, encodeSafetensors, type Tensors } from "../../policy/index.ts";
import type { Floats, TensorSpace } from "../tensor/index.ts";
import type { Work } from "./work.ts";

export interface GradientLearner {
  /** All blocks that a step reads and changes: parameters first, then moments, targets and the like. */
  readonly state: readonly Floats[];
  /** The policy's part of the state. Restored to its best values if training stops early. */
  readonly parameters: readonly Floats[];
  /** Called before the first step in this process. `memory`: the result of `memory()` when the state was saved. */
  seek(step: number, memory: Json | undefined): void;
  /** State that blocks cannot hold. */
  memory?(): Json;
  /** Measures for the curve, over the steps since the last call. */
  measure?(): Readonly<Record<string, number>>;
  /** Takes step `step` and returns its loss. */
  step(step: number): number | Work<number>;
  /** Losses on held-out rows; `loss` decides on early stopping. Undefined if no rows are held out. */
  evaluate(): HeldOutLoss | undefined | Work<HeldOutLoss | undefined>;
}

export interface HeldOutLoss {
  readonly loss: number;
  readonly [measure: string]: number;
}

export interface CurvePoint {
  readonly step: number;
  /** Mean over the steps since the last point. */
  readonly loss: number;
  readonly heldOut?: HeldOutLoss;
  readonly measures?: Readonly<Record<string, number>>;
}

interface StepLimits {
  readonly steps: number;
  /** Steps between two points of the curve. */
  readonly every: number;
  /** Points without a better held-out loss before training stops; the best weights are kept. 0: never stops early. */
  readonly patience: number;
}

/** Storage of a training's state between processes. */
export interface Saver {
  /** Name of the storage, for messages. */
  readonly place?: string;
  load(): Uint8Array | undefined;
  save(bytes: Uint8Array): void;
}

export interface FitHooks {
  readonly progress?: ((point: CurvePoint & { steps: number }) => void) | undefined;
  readonly saver?: Saver | undefined;
}

export interface Fitted {
  readonly curve: readonly CurvePoint[];
  /** The step whose weights are kept. */
  readonly bestStep: number;
  readonly steps: number;
  /** True if the weights differ from the initial weights. */
  readonly changed: boolean;
  readonly resumedAt?: number;
}

interface FitProgress {
  step: number;
  curve: CurvePoint[];
  best: { step: number; loss: number };
  changed: boolean;
  memory?: Json;
}

/** `identity`: the inputs that determine the training. A saved state with another identity is refused. */
export function* fitLearner(
  space: TensorSpace,
  learner: GradientLearner,
  options: StepLimits & FitHooks & { readonly identity: Json },
): Work<Fitted> {
  const { steps, every, patience, progress, saver } = options;
  const key = digestJson("rollbook.training-state.v1", options.identity);
  const best = learner.parameters.map((block) => space.view(block).slice());
  const start = best.map((values) => values.slice());
  const at: FitProgress = {
    step: 0,
    curve: [],
    best: { step: 0, loss: Number.POSITIVE_INFINITY },
    changed: false,
  };
  const saved = saver?.load();
  if (saved !== undefined) restore(space, { saved, place: saver?.place, key, learner, best, at });
  const resumedAt = at.step;
  learner.seek(at.step, at.memory);
  while (at.step < steps && !isOver(at, patience)) {
    const until = Math.min(steps, at.step + every);
    let loss = 0;
    const from = at.step;
    for (; at.step < until; at.step++) {
      const taken = learner.step(at.step);
      loss += finite(typeof taken === "number" ? taken : yield* taken, at.step);
    }
    const judged = learner.evaluate();
    const heldOut = isWork(judged) ? yield* judged : judged;
    const point: CurvePoint = {
      ...{ step: at.step, loss: loss / (until - from), ...(heldOut === undefined ? {} : { heldOut }) },
      ...(learner.measure === undefined ? {} : { measures: learner.measure() }),
    };
    at.curve.push(point);
    at.changed ||= learner.parameters.some((block, i) => differs(space.view(block), start[i]!));
    const held = patience === 0 ? undefined : point.heldOut?.loss;
    if (held === undefined || held < at.best.loss) {
      at.best = { step: at.step, loss: held ?? at.best.loss };
      for (const [i, block] of learner.parameters.entries()) best[i]!.set(space.view(block));
    }
    if (learner.memory !== undefined && saver !== undefined) at.memory = learner.memory();
    saver?.save(encode(space, { key, learner, best, at }));
    progress?.({ ...point, steps });
  }
  for (const [i, block] of learner.parameters.entries()) space.view(block).set(best[i]!);
  return {
    ...{ curve: at.curve, bestStep: at.best.step, steps: at.step, changed: at.changed },
    ...(resumedAt > 0 ? { resumedAt } : {}),
  };
}

function isWork(value: ReturnType<GradientLearner["evaluate"]>): value is Work<HeldOutLoss | undefined> {
  return value !== undefined && Symbol.iterator in value;
}

function isOver({ curve, best }: FitProgress, patience: number): boolean {
  if (patience === 0) return false;
  return curve.filter(({ step }) => step > best.step).length >= patience;
}

function finite(loss: number, step: number): number {
  if (Number.isFinite(loss)) return loss;
  throw new RollbookError(
    "training-diverged",
    { step, loss: String(loss) },
    `the loss of step ${step} is ${loss}. Lower the learning rate, or look for extreme rewards and features.`,
  );
}

function differs(a: Float32Array, b: Float32Array): boolean {
  return a.some((value, i) => value !== b[i]);
}

interface SavedParts {
  readonly key: string;
  readonly learner: GradientLearner;
  readonly best: readonly Float32Array[];
  readonly at: FitProgress;
}

function encode(space: TensorSpace, { key, learner, best, at }: SavedParts): Uint8Array {
  const tensors: Record<string, Tensors[string]> = {};
  learner.state.forEach((block, i) => {
    tensors[`state${i}`] = { shape: [block.length], data: space.view(block).slice() };
  });
  best.forEach((data, i) => {
    tensors[`best${i}`] = { shape: [data.length], data };
  });
  const { loss } = at.best;
  const known = { ...at, best: { step: at.best.step, ...(Number.isFinite(loss) ? { loss } : {}) } };
  return encodeSafetensors({ tensors, metadata: { key, progress: JSON.stringify(known) } });
}

function restore(
  space: TensorSpace,
  { saved, place, key, learner, best, at }: SavedParts & { saved: Uint8Array; place: string | undefined },
): void {
  const where = place === undefined ? "the saved training state" : `the training state ${place}`;
  const { tensors, metadata } = decodeSafetensors(saved, where);
  if (metadata.key !== key)
    throw new RollbookError(
      "other-training",
      { expected: key, actual: metadata.key ?? null },
      `${where} belongs to another training: other rows, options, seed or algorithm. Repeat that command to finish it, or remove the state to begin anew.`,
    );
  const data = (name: string) => tensors[name]!.data as Float32Array;
  for (const [i, block] of learner.state.entries()) space.view(block).set(data(`state${i}`));
  for (const [i, values] of best.entries()) values.set(data(`best${i}`));
  const progress = JSON.parse(metadata.progress!) as FitProgress;
  const { step, loss = Number.POSITIVE_INFINITY } = progress.best as { step: number; loss?: number };
  Object.assign(at, progress, { best: { step, loss } });
}
