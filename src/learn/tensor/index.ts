export { type Mlp, type MlpShape, makeMlp, namedParameters, orthogonalStart, uniformStart } from "./mlp.ts";
export { type AdamState, adamW, clipNorm, follow } from "./optimizer.ts";
export { type Floats, openTensors, padded, type TensorSpace } from "./tensor-space.ts";
