export { checkPsionicArtifact, decodePsionic, makePsionicArtifact } from "./artifact.ts";
export { assemblePsionicBatch, checkPsionicBatch } from "./batch.ts";
export { fromPsionicArtifact, toPsionicArtifact } from "./convert-artifact.ts";
export { fromPsionicRevision, toPsionicRevision } from "./convert-revision.ts";
export { parsePsionicArtifact, parsePsionicBatch, parsePsionicRevision, writePsionicJson } from "./json.ts";
export {
  type PsionicArtifact,
  type PsionicBatch,
  type PsionicRevision,
  psionicArtifact,
  psionicRevision,
} from "./schema.ts";
