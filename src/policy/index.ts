export { DEFAULT_DRAWS, DEFAULT_FLOOR } from "./bandit-policy.ts";
export {
  CHECKPOINT_KIND,
  type Checkpoint,
  decodeModel,
  encodeModel,
  openCheckpoint,
  type PolicyKind,
  type PolicyModel,
  readCheckpoint,
  requireSpec,
  sealCheckpoint,
  type TrainingDataset,
  writeCheckpoint,
} from "./checkpoint.ts";
export type { Constraints } from "./constraints.ts";
export { decide, digestRouter, distribution, draw, type Router } from "./decide.ts";
export {
  CANDIDATE_REASONS,
  type Decision,
  type DecisionCandidate,
  type DecisionContext,
  type DecisionEnvironment,
  type DecisionPolicy,
  type DecisionReason,
  type DeclaredSoftmax,
  type EnvironmentStep,
  type PromptVectors,
  vectorFor,
} from "./decision.ts";
export {
  type CandidateScore,
  contextReader,
  crowdedBuckets,
  explainPolicy,
  type FeaturePart,
  withUsualRequest,
} from "./explain/index.ts";
export {
  type AnyFeatureSpec,
  DEFAULT_FEATURES,
  type FeatureSpec,
  parseAnySpec,
  parseFeatureSpec,
  type ValueSpec,
} from "./feature-spec.ts";
export { type FeatureReader, makeFeatureReader, type SparseVector, squash } from "./features.ts";
export { type DecisionToLog, stepOf } from "./log-step.ts";
export { mlpMembers, wideValues } from "./mlp-policy.ts";
export { answerOf, policyOf } from "./policy-of.ts";
export { readYaml } from "./read-yaml.ts";
export { fieldsNeverSent, neverSentWarning, REQUEST_FIELDS } from "./request-fields.ts";
export { isUsers, promptOfMessages } from "./request-prompt.ts";
export {
  decodeSafetensors,
  encodeSafetensors,
  planSafetensors,
  type Tensor,
  type TensorShape,
  type Tensors,
} from "./safetensors.ts";
export { hashText, mix } from "./scan-prompt.ts";
export {
  parseStaticTable,
  requireFieldsOfCalls,
  requireKnownNames,
  type StaticTable,
} from "./static-table.ts";
export {
  denseSizeOf,
  distinctRows,
  embeddingAt,
  type FittedColumns,
  makeValueReader,
  type NeighbourRows,
  neighbourMeans,
  PROMPT_MEASURES,
  TermReader,
} from "./value/index.ts";
