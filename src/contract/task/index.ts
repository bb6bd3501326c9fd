export { type EnvironmentKey, EnvironmentPackage, environmentKey } from "./environment.ts";
export { Task } from "./task.ts";
