export { checkPsionicArtifact, makePsionicArtifact } from "./artifact.ts";
export {
  assemblePsionicBatch,
  checkPsionicBatch,
  makePsionicLineage,
  type PsionicBatchParts,
} from "./batch.ts";
export { fromPsionicArtifact, type PsionicContext, toPsionicArtifact } from "./convert-artifact.ts";
export { fromPsionicRevision, toPsionicRevision } from "./convert-revision.ts";
export { digestPsionicArtifact, digestPsionicBatch, digestPsionicLineage } from "./digest.ts";
export {
  parsePsionicArtifact,
  parsePsionicBatch,
  parsePsionicRevision,
  writePsionicJson,
} from "./json.ts";
export type {
  PsionicArtifact,
  PsionicBatch,
  PsionicLineage,
  PsionicProof,
  PsionicRevision,
  PsionicSample,
  PsionicTermination,
} from "./schema.ts";
