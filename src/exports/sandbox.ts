export {
  type EngineName,
  type ExecResult,
  type Files,
  type Limits,
  openSandbox,
  type Program,
  type Sandbox,
  type SandboxOptions,
  type Threat,
  textOf,
} from "../collect/sandbox/index.ts";
