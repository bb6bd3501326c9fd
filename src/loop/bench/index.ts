export { ablate, cellsOf, measureAblation } from "./ablate.ts";
export { measureSuite } from "./measure-suite.ts";
export { runSuite, writeLog } from "./run-suite.ts";
export { shippedSuites } from "./shipped-suites.ts";
export { parseSuite, type Suite } from "./suite.ts";
export { checkpointFolder, logFile, MODELS_FILE, RESULT_FILE, SUITE_FILE } from "./suite-folder.ts";
