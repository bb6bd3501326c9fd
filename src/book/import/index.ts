export { IdConflicts } from "./id-conflicts.ts";
export { type ImportSummary, isWhole } from "./import-files.ts";
export {
  type ImportInput,
  type ImportReport,
  importRollouts,
  type NamedStream,
  refusedError,
} from "./import-rollouts.ts";
export type { ImportWarning } from "./import-watch.ts";
export { splitLines } from "./lines.ts";
export { IMPORTABLE_KINDS } from "./prepare.ts";
