export { closeAbove, SHELL } from "./descriptors.ts";
export { openSandbox, type SandboxOptions } from "./open.ts";
export {
  type EngineName,
  type ExecResult,
  type Files,
  type Limits,
  type Program,
  type Sandbox,
  type Threat,
  textOf,
} from "./sandbox.ts";
