export { distinctRows } from "./distinct-rows.ts";
export { type NeighbourRows, neighbourMeans } from "./neighbours.ts";
export {
  denseSizeOf,
  embeddingAt,
  type FittedColumns,
  makeValueReader,
  PROMPT_MEASURES,
  TermReader,
} from "./value-features.ts";
export { openValueModel, type ValueModel, valuePolicy } from "./value-policy.ts";
