/** Starts abandon-sandbox.ts and kills it with SIGKILL once its program runs. Out: the id of the killed process. */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

/** `seconds` also identifies the program: no other program may sleep exactly that long. */
export async function abandonSandbox(seconds: string, ...args: readonly string[]): Promise<number> {
  const script = fileURLToPath(new URL("./abandon-sandbox.ts", import.meta.url));
  const child = spawn(process.execPath, ["--import", "tsx", script, seconds, ...args], { stdio: "inherit" });
  const ended = once(child, "exit");
  await untilRunning(`sleep ${seconds}`);
  child.kill("SIGKILL");
  await ended;
  return child.pid!;
}

/** Waits for a process with exactly this command line, anywhere on this machine. */
export async function untilRunning(commandLine: string): Promise<void> {
  for (let tries = 0; running(commandLine) === 0; tries++) {
    if (tries > 600) throw new Error(`${commandLine} was never started`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

export function running(commandLine: string): number {
  const { stdout } = spawnSync("pgrep", ["-fcx", commandLine], { encoding: "utf8" });
  return Number(stdout.trim());
}
