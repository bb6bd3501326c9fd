export { runFacts } from "./run-facts.ts";
export { reportRun, writeReport } from "./write-report.ts";
