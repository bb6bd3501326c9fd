export { type PolicyPoint, policyPoints } from "./policy-points.ts";
export { runFacts } from "./run-facts.ts";
export { reportRun, writeReport } from "./write-report.ts";
