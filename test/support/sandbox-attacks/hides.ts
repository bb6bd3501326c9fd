/** The judge of attacks that look for secrets of the host. Pure. */
import { type ExecResult, textOf } from "../../../src/collect/sandbox/sandbox.ts";

/** Returns a fault if one of the secrets occurs in the output or in a file of the result. */
export function hides(result: ExecResult, ...secrets: readonly string[]): string | undefined {
  const seen = [result.stdout, result.stderr, ...Object.values(result.files)].map(textOf).join("\n");
  return secrets.some((secret) => seen.includes(secret)) ? "a secret of the host came out" : undefined;
}
