/** Frees a folder that a killed test run left. Ends the Docker daemons with data there and their containers, and
 *  unmounts their mounts. In: the folder. Out: nothing; the folder can then be removed. Linux only; does nothing
 *  elsewhere. */
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";

const WAIT_MS = 10_000;

export function releaseFolder(folder: string): void {
  if (!existsSync("/proc/self/mountinfo")) return;
  // Containers are found by the folder below their root: they outlive a daemon, and their command lines do not identify
  // them.
  const pids = pidsWith(folder);
  for (const pid of pids) end(pid);
  const limit = performance.now() + WAIT_MS;
  while (pids.some((pid) => existsSync(`/proc/${pid}`)) && performance.now() < limit)
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 20);
  // Innermost mounts first. Lazily, because a process that is about to end may still have a file open.
  for (const path of mountsBelow(folder).reverse()) spawnSync("umount", ["--lazy", path]);
}

function pidsWith(folder: string): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .filter((pid) => isDaemonOf(pid, folder) || isContainerOf(pid, folder))
    .map(Number);
}

/** True for dockerd, containerd and its shims: all of them get paths in the folder. */
function isDaemonOf(pid: string, folder: string): boolean {
  const [program = "", ...words] = read(`/proc/${pid}/cmdline`).split("\0");
  return (
    /(^|\/)(dockerd|containerd[\w-]*)$/.test(program) && words.some((word) => word.includes(`${folder}/`))
  );
}

function isContainerOf(pid: string, folder: string): boolean {
  const root = read(`/proc/${pid}/mountinfo`)
    .split("\n")
    .find((line) => line.split(" ")[4] === "/");
  return root?.includes(`upperdir=${folder}/`) === true;
}

function mountsBelow(folder: string): string[] {
  return read("/proc/self/mountinfo")
    .split("\n")
    .map((line) => line.split(" ")[4] ?? "")
    .filter((path) => path.startsWith(`${folder}/`))
    .sort();
}

function end(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // The process has just ended.
  }
}

function read(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return ""; // The process has just ended.
  }
}
