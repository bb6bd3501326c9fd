/** Small checks of results, shared by the attacks. Each returns a description of the fault, or undefined. Pure. */
import { CLEAN_ENV, type ExecResult, textOf } from "../sandbox.ts";

type Flag = "timedOut" | "outOfMemory" | "pidsExceeded" | "outputExceeded";
const FLAGS: readonly Flag[] = ["timedOut", "outOfMemory", "pidsExceeded", "outputExceeded"];

/** Expects exactly these flags. */
export function flags(result: ExecResult, ...expected: readonly Flag[]): string | undefined {
  const wrong = FLAGS.filter((flag) => result[flag] !== expected.includes(flag));
  return wrong.length === 0 ? undefined : `wrong ${wrong.join(", ")} in ${summary(result)}`;
}

/** Expects that the program ended by itself with this status and no flag. */
export function exits(result: ExecResult, exitCode: number): string | undefined {
  return result.exitCode === exitCode ? flags(result) : `expected exit ${exitCode}, got ${summary(result)}`;
}

/** Expects that the program ended by itself with status 0 and printed this text. */
export function prints(result: ExecResult, expected: string): string | undefined {
  const fault = exits(result, 0);
  if (fault !== undefined) return fault;
  return textOf(result.stdout) === expected
    ? undefined
    : `printed ${quote(result.stdout)}, not ${expected.trim()}`;
}

/** Expects only names of the clean environment and of the shell. */
export function cleanEnvironment(names: readonly string[]): string | undefined {
  const known = new Set([...Object.keys(CLEAN_ENV), "PWD", "OLDPWD", "SHLVL", "_", "LC_CTYPE", "HOSTNAME"]);
  const foreign = names.filter((name) => !known.has(name));
  return foreign.length === 0 ? undefined : `the environment shows ${foreign.join(", ")}`;
}

/** Expects an end by SIGKILL. */
export function killed({ exitCode, signal }: ExecResult): string | undefined {
  return exitCode === null && signal === "SIGKILL" ? undefined : `ended by ${signal}`;
}

export function summary(result: ExecResult): string {
  const { exitCode, signal, timedOut, outOfMemory, pidsExceeded, outputExceeded } = result;
  const verdict = JSON.stringify({ exitCode, signal, timedOut, outOfMemory, pidsExceeded, outputExceeded });
  return `${verdict} stdout ${quote(result.stdout)} stderr ${quote(result.stderr)}`;
}

function quote(bytes: Uint8Array): string {
  return JSON.stringify(textOf(bytes).slice(0, 300));
}
