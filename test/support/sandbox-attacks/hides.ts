/** The judge of attacks that look for secrets of the host. Pure. */
import { type ExecResult, textOf } from "../../../src/collect/sandbox/sandbox.ts";

/** None of these texts shows in anything that came out. */
export function hides(result: ExecResult, ...secrets: readonly string[]): string | undefined {
  const seen = [result.stdout, result.stderr, ...Object.values(result.files)].map(textOf).join("\n");
  return secrets.some((secret) => seen.includes(secret)) ? "a secret of the host came out" : undefined;
}
