export * from "./bootstrap.ts";
export * from "./bounds.ts";
export * from "./confidence-sequence.ts";
export * from "./corrected-interval.ts";
export * from "./interval.ts";
export * from "./sensitivity.ts";
export * from "./student-interval.ts";
