/** Starts abandon-sandbox.ts and kills it as hard as can be once its program runs. Out: the process id it had. */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

export async function abandonSandbox(...args: readonly string[]): Promise<number> {
  const script = fileURLToPath(new URL("./abandon-sandbox.ts", import.meta.url));
  const child = spawn(process.execPath, ["--import", "tsx", script, ...args], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  await Promise.race([once(child.stdout, "data"), once(child, "exit")]);
  if (child.exitCode !== null) throw new Error(`the sandbox could not be opened: exit ${child.exitCode}`);
  const ended = once(child, "exit");
  child.kill("SIGKILL");
  await ended;
  return child.pid!;
}

/** Processes called exactly so, by their full command line. */
export function running(commandLine: string): number {
  const { stdout } = spawnSync("pgrep", ["-fcx", commandLine], { encoding: "utf8" });
  return Number(stdout.trim());
}
