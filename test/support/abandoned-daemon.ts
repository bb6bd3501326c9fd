/** Frees a folder that a killed test run left: ends the Docker daemons that have their data there, and unmounts what they
 *  mounted. In: the folder. Out: nothing; the folder can then be removed. Linux only; elsewhere nothing is there to do. */
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";

const WAIT_MS = 10_000;

export function releaseFolder(folder: string): void {
  if (!existsSync("/proc/self/mountinfo")) return;
  const daemons = pidsNaming(folder);
  for (const pid of daemons) process.kill(pid, "SIGKILL");
  const end = performance.now() + WAIT_MS;
  while (daemons.some((pid) => existsSync(`/proc/${pid}`)) && performance.now() < end)
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 20);
  // The innermost first; lazily, because a container of the daemon may still have a file open.
  for (const path of mountsBelow(folder).reverse()) spawnSync("umount", ["--lazy", path]);
}

/** dockerd and the containerd that it starts: both are given paths in the folder. */
function pidsNaming(folder: string): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .filter((name) => {
      const words = commandLine(name).split("\0");
      return (
        /(^|\/)(dockerd|containerd)$/.test(words[0] ?? "") &&
        words.some((word) => word.includes(`${folder}/`))
      );
    })
    .map(Number);
}

function commandLine(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8");
  } catch {
    return ""; // It has just ended.
  }
}

function mountsBelow(folder: string): string[] {
  return readFileSync("/proc/self/mountinfo", "utf8")
    .split("\n")
    .map((line) => line.split(" ")[4] ?? "")
    .filter((path) => path.startsWith(`${folder}/`))
    .sort();
}
