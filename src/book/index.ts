/** Public interface of book/: all operations on a book. Every function takes an open book, or a path. */
export { RollbookError } from "../base/index.ts";
export {
  defineRollout,
  type Launch,
  type Payload,
  type RolloutContext,
  type RolloutFunction,
  type RolloutOutput,
  type RolloutResult,
} from "../collect/rollout/index.ts";
export type { ReadableBatch } from "../keep/batch/index.ts";
export * from "./batches/index.ts";
export * from "./collect/index.ts";
export * from "./convert/index.ts";
export * from "./decisions/index.ts";
export * from "./import/index.ts";
export * from "./judge/index.ts";
export * from "./maintain/index.ts";
export * from "./open/index.ts";
export * from "./replay/index.ts";
export * from "./rollouts/index.ts";
export * from "./serve/index.ts";
export * from "./train/index.ts";
