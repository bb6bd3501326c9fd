/** Runs a bash script to its end. In: the script, its directory and variables. Out: the exit code and the output. */
import { spawn } from "node:child_process";
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export interface ScriptOutcome {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

export async function runScript(
  script: string,
  { cwd, env }: { cwd: string; env: NodeJS.ProcessEnv },
): Promise<ScriptOutcome> {
  const folder = mkdtempSync(join(tmpdir(), "rollbook-script-"));
  const paths = ["out", "err"].map((name) => join(folder, name));
  const files = paths.map((path) => openSync(path, "a"));
  // A separate process group, so that servers which the script left running end with it. Every process of the group
  // holds stream 3, so `close` waits for all of them.
  const shell = spawn("bash", ["--norc", "-c", script], {
    ...{ cwd, env, detached: true },
    stdio: ["ignore", files[0], files[1], "pipe"],
  });
  for (const file of files) closeSync(file);
  shell.stdio[3]!.on("data", () => {});
  const closed = new Promise((done) => shell.on("close", done));
  const code = await new Promise<number | null>((done) => shell.on("exit", done));
  try {
    process.kill(-shell.pid!, "SIGTERM");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
  await closed;
  const [out, err] = paths.map((path) => readFileSync(path, "utf8")) as [string, string];
  rmSync(folder, { recursive: true });
  return { code, out, err };
}
