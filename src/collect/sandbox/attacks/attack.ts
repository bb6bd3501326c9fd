/** One attack: a program, and a judge that says what went wrong. */
import type { ExecResult, Files, Limits, Program, Threat } from "../sandbox.ts";

export interface Attack {
  readonly name: string;
  readonly threat: Threat;
  /** Part of the self-test at every start: kept few and fast. */
  readonly probe: boolean;
  readonly program: Program;
  readonly files: Files;
  readonly limits: Partial<Limits>;
  /** What went wrong, or undefined when the sandbox held. Asks for the exact verdict, not only for no harm. */
  fault(result: ExecResult): string | undefined;
}

/** For attacks that end by themselves: long enough for a slow or crowded machine, on which time is no verdict. */
export const PATIENCE_MS = 20_000;
