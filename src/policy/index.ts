export { decide, digestRouter, distribution, type Router } from "./decide.ts";
export type {
  Decision,
  DecisionCandidate,
  DecisionContext,
  DecisionPolicy,
  DecisionReason,
  PolicyAnswer,
} from "./decision.ts";
export { stepOf } from "./log-step.ts";
export { parseStaticTable, type StaticTable } from "./static-table.ts";
