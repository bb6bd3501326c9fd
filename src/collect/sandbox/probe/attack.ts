/** One attack: a program, and a judge that describes the fault.
 *  In: a source text and its judge. Out: an Attack. Pure. */
import type { ExecResult, Files, Limits, Program, ProgramIo, Threat } from "../sandbox.ts";

export interface Attack {
  readonly name: string;
  readonly threat: Threat;
  readonly program: Program;
  readonly files: Files;
  readonly limits: Partial<Limits>;
  /** Description of the fault, or undefined if the sandbox held. Demands the exact verdict, not only no harm. */
  fault(result: ExecResult): string | undefined;
}

interface AttackOptions extends ProgramIo {
  readonly limits?: Partial<Limits>;
  readonly fault: Attack["fault"];
}

/** For attacks that end by themselves. Long enough for a slow or crowded machine: a timeout there proves nothing. */
export const PATIENCE_MS = 20_000;

/** Makes an attack for engines that run real processes. */
export function shell(name: string, threat: Threat, script: string, options: AttackOptions): Attack {
  const { limits, fault, ...io } = options;
  return {
    ...{ name: `shell: ${name}`, threat, files: {}, fault },
    program: { ...io, kind: "command", argv: ["/bin/sh", "-c", script] },
    limits: { timeoutMs: PATIENCE_MS, ...limits },
  };
}

/** Makes an attack for every engine: Node in namespaces and QuickJS in WebAssembly both run JavaScript. */
export function javascript(name: string, threat: Threat, source: string, options: AttackOptions): Attack {
  const { limits, fault, ...io } = options;
  return {
    ...{ name: `JavaScript: ${name}`, threat, fault },
    program: { ...io, kind: "javascript", entry: "attack.mjs" },
    files: { "attack.mjs": source },
    limits: { timeoutMs: PATIENCE_MS, ...limits },
  };
}
