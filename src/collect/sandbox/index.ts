export { openSandbox, type SandboxOptions } from "./open.ts";
export {
  DEFAULT_LIMITS,
  type EngineName,
  type ExecResult,
  type ExecUsage,
  type Files,
  type Limits,
  type Program,
  type ProgramKind,
  type Sandbox,
  type Threat,
  textOf,
} from "./sandbox.ts";
