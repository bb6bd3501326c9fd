/** Reads and writes the small files of a cgroup file system. Calls are synchronous: the kernel answers at once. */
import { readdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { RollbookError } from "../../../base/index.ts";

/** Lines of /proc/<pid>/cgroup as [controllers, path]. Version 2 has no controllers. */
export function membership(pid: number): [string, string][] {
  return readFileSync(`/proc/${pid}/cgroup`, "utf8")
    .trim()
    .split("\n")
    .map((line) => {
      const [, controllers = "", ...path] = line.split(":");
      return [controllers, path.join(":")];
    });
}

export function keyed(file: string, key: string): number {
  const line = readFileSync(file, "utf8")
    .split("\n")
    .find((candidate) => candidate.startsWith(`${key} `));
  if (line === undefined) throw unavailable(`${file} has no ${key}`);
  return Number(line.slice(key.length + 1));
}

export function readPids(file: string): number[] {
  try {
    return readFileSync(file, "utf8").split("\n").filter(Boolean).map(Number);
  } catch (error) {
    // ENODEV: the group was removed during the read (a container that has just ended).
    if (["ENOENT", "ENODEV"].includes((error as NodeJS.ErrnoException).code ?? "")) return [];
    throw error;
  }
}

export function killOne(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

/** Kills the remaining processes first: the group of a dead owner may still hold some. */
export function removeGroup(directory: string): void {
  for (let tries = 0; ; tries++) {
    for (const pid of readPids(join(directory, "cgroup.procs"))) killOne(pid);
    try {
      for (const child of readdirSync(directory, { withFileTypes: true }))
        if (child.isDirectory()) removeGroup(join(directory, child.name));
      rmdirSync(directory);
      return;
    } catch (error) {
      const code = (error as NodeJS.ErrnoException).code;
      if (code === "ENOENT") return;
      if (code !== "EBUSY" || tries >= 500) throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2);
    }
  }
}

export function writeIfPresent(file: string, text: string): void {
  try {
    writeFileSync(file, text, { flag: "r+" });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
  }
}

export function unavailable(what: string, cause?: unknown): RollbookError {
  return new RollbookError(
    "sandbox-no-cgroups",
    { what },
    `control groups cannot be used: ${what}. Run as root, or in a session with delegated cgroups ` +
      "(systemd-run --user --scope -p Delegate=yes), or choose the quickjs engine.",
    { cause },
  );
}
