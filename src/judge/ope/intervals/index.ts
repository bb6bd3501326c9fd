export { type BootstrapOptions, bootstrap, bootstrapInterval, percentileInterval } from "./bootstrap.ts";
export { type BoundOptions, bernsteinInterval, hoeffdingInterval } from "./bounds.ts";
export { ConfidenceSequence, confidenceSequence } from "./confidence-sequence.ts";
export { type Interval, type Range, weightedRange } from "./interval.ts";
export { GAMMAS, type SensitivityBound, sensitivityBounds } from "./sensitivity.ts";
export { studentInterval } from "./student-interval.ts";
