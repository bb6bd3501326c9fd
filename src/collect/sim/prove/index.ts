export { environmentPackage, ROLLOUT_LIMITS } from "./environment-package.ts";
export { type GeneratedTask, type GenerateOptions, generateTasks, type TaskRejection } from "./generate.ts";
export { type Grader, proofGrader, sandboxGrader } from "./graders.ts";
export { gatherProofs, proveTask } from "./prove.ts";
export { readTasks, refuseExisting, type TasksMeta, writeTasks } from "./task-files.ts";
