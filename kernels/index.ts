export { columnSums, product, productTransposed } from "./product";
export { huber, rmsNorm, rmsNormBackward, softmaxRows, tanh } from "./functions";
export { adamW, follow, scale, squaredNorm } from "./optimizer";
