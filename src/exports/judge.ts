export { readLog } from "../book/decisions/index.ts";
export {
  type Contender,
  calibrateFloor,
  checkData,
  type Evaluation,
  evaluatePolicy,
  evaluateTarget,
  frontier,
  type GatedCandidate,
  type GateMethod,
  type GateOptions,
  type GateRule,
  gatePolicies,
  type JudgedRow,
  routerOf,
  toJudgedRows,
} from "../judge/index.ts";
