/** The facts of the demo. The types are in view/, which renders them. */
export type {
  CostQualityPoint,
  DemoLearner,
  DemoRefusal,
  DemoSummary,
  DemoWindow,
  LedgerFacts,
  LineageEdge,
  LineageNode,
  StageTime,
} from "../../view/demo-summary.ts";
