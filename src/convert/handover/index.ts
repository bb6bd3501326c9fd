export { toExported } from "./exported.ts";
export {
  groupOf,
  type HandedCall,
  type HandedConversation,
  type HandedRollout,
  type HandedTask,
  type HandedTokens,
} from "./handed-rollout.ts";
export { byTask, inGroups } from "./in-groups.ts";
export { type FieldLoss, LossTally, ROLLOUT_PARTS, type RolloutPart } from "./loss-tally.ts";
export { promptMessages, promptOf, responseText, splitConversation } from "./prompt-of.ts";
export { provenanceOfRollout, type RowProvenance } from "./provenance-of.ts";
export { splitTokens, TokenRules } from "./token-rules.ts";
export type { HandoverBatch, HandoverContext, HandoverOptions, TrainerFormat } from "./trainer-format.ts";
