/** One attack: a program, and a judge that says what went wrong. In: a source text and its judge. Out: an Attack. Pure. */
import type { ExecResult, Files, Limits, Program, ProgramIo, Threat } from "../sandbox.ts";

export interface Attack {
  readonly name: string;
  readonly threat: Threat;
  readonly program: Program;
  readonly files: Files;
  readonly limits: Partial<Limits>;
  /** What went wrong, or undefined when the sandbox held. Asks for the exact verdict, not only for no harm. */
  fault(result: ExecResult): string | undefined;
}

interface AttackOptions extends ProgramIo {
  readonly limits?: Partial<Limits>;
  readonly fault: Attack["fault"];
}

/** For attacks that end by themselves: long enough for a slow or crowded machine, on which time is no verdict. */
export const PATIENCE_MS = 20_000;

/** For engines that run real processes. */
export function shell(name: string, threat: Threat, script: string, options: AttackOptions): Attack {
  const { limits, fault, ...io } = options;
  return {
    ...{ name: `shell: ${name}`, threat, files: {}, fault },
    program: { ...io, kind: "command", argv: ["/bin/sh", "-c", script] },
    limits: { timeoutMs: PATIENCE_MS, ...limits },
  };
}

/** Every engine runs JavaScript: Node inside namespaces, or QuickJS in WebAssembly. */
export function javascript(name: string, threat: Threat, source: string, options: AttackOptions): Attack {
  const { limits, fault, ...io } = options;
  return {
    ...{ name: `JavaScript: ${name}`, threat, fault },
    program: { ...io, kind: "javascript", entry: "attack.mjs" },
    files: { "attack.mjs": source },
    limits: { timeoutMs: PATIENCE_MS, ...limits },
  };
}
