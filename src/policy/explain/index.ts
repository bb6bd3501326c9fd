export * from "./explain-policy.ts";
export type { CandidateScore, FeaturePart } from "./score-parts.ts";
export * from "./usual-request.ts";
