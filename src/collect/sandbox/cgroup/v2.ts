/** Version 2: one directory with all controllers. */
import { closeSync, mkdirSync, openSync, readFileSync, readSync, writeFileSync, writeSync } from "node:fs";
import { dirname, join } from "node:path";
import { reasonOf } from "../../../base/index.ts";
import { claimName, staleNames } from "../owner.ts";
import { keyed, membership, readPids, removeGroup, unavailable, writeIfPresent } from "./files.ts";
import {
  type CgroupSlot,
  type Cgroups,
  type CgroupView,
  CONTROLLERS,
  type Counters,
  CPU_PERIOD_US,
  type GroupLimits,
} from "./slot.ts";

export class CgroupsV2 implements Cgroups {
  readonly version = 2;
  readonly #root: string;

  constructor(root: string) {
    this.#root = root;
  }

  openSlot(): CgroupSlot {
    const faults: string[] = [];
    for (const base of this.#candidates()) {
      try {
        enableControllers(base);
        for (const name of staleNames(base)) removeGroup(join(base, name));
        return new SlotV2(
          join(
            base,
            claimName((name) => mkdirSync(join(base, name))),
          ),
        );
      } catch (error) {
        faults.push(`${base}: ${reasonOf(error)}`);
      }
    }
    throw unavailable(faults.join("; "));
  }

  groupOf(pid: number): CgroupView {
    const own = membership(pid).find(([controllers]) => controllers === "");
    if (own === undefined) throw unavailable(`process ${pid} is in no version 2 group`);
    return new SlotV2(join(this.#root, own[1]));
  }

  /** The root first (for an administrator), then the groups above this process (for a delegated user session).
   *  The group of this process itself is excluded: a group with members cannot delegate controllers to its children. */
  #candidates(): string[] {
    const own = membership(process.pid).find(([controllers]) => controllers === "")?.[1] ?? "/";
    const around: string[] = [];
    for (let path = dirname(own); path !== "/" && path !== "."; path = dirname(path))
      around.push(join(this.#root, path));
    return [this.#root, ...around];
  }
}

class SlotV2 implements CgroupSlot {
  readonly procsFiles: readonly string[];
  readonly #directory: string;
  /** Open file of the memory peak. Since Linux 6.12 it can be reset per open file. -1 if the kernel cannot. */
  #peakFd: number | undefined;

  constructor(directory: string) {
    this.#directory = directory;
    this.procsFiles = [join(directory, "cgroup.procs")];
  }

  limit({ memoryBytes, pids, cpus }: GroupLimits): void {
    this.#write("memory.max", String(memoryBytes));
    writeIfPresent(this.#path("memory.swap.max"), "0");
    // Kills the whole group at once: a program that lost some of its processes has no meaningful verdict.
    this.#write("memory.oom.group", "1");
    this.#write("pids.max", String(pids));
    this.#write("cpu.max", `${Math.ceil(cpus * CPU_PERIOD_US)} ${CPU_PERIOD_US}`);
  }

  counters(): Counters {
    return {
      oomKills: keyed(this.#path("memory.events"), "oom_kill"),
      pidsRefused: keyed(this.#path("pids.events"), "max"),
      cpuMs: keyed(this.#path("cpu.stat"), "usage_usec") / 1e3,
      peakMemoryBytes: this.#peak(),
    };
  }

  resetPeak(): void {
    if (this.#peakFd === -1) return;
    try {
      this.#peakFd ??= openSync(this.#path("memory.peak"), "r+");
      writeSync(this.#peakFd, "reset");
    } catch (error) {
      // EACCES/EINVAL/ENOENT: an older kernel. The peak is then reported as unknown, never as a stale value.
      if (!["EACCES", "EINVAL", "ENOENT"].includes((error as NodeJS.ErrnoException).code ?? "")) throw error;
      this.#peakFd = -1;
    }
  }

  pids(): number[] {
    return readPids(this.#path("cgroup.procs"));
  }

  members(): number {
    return Number(readFileSync(this.#path("pids.current"), "utf8"));
  }

  kill(): void {
    this.#write("cgroup.kill", "1");
  }

  remove(): void {
    if (this.#peakFd !== undefined && this.#peakFd !== -1) closeSync(this.#peakFd);
    this.#peakFd = -1;
    removeGroup(this.#directory);
  }

  #peak(): number | null {
    if (this.#peakFd === undefined || this.#peakFd === -1) return null;
    const buffer = Buffer.alloc(32);
    return Number(buffer.toString("utf8", 0, readSync(this.#peakFd, buffer, 0, 32, 0)));
  }

  #write(file: string, text: string): void {
    writeFileSync(this.#path(file), text);
  }

  #path(file: string): string {
    return join(this.#directory, file);
  }
}

function enableControllers(base: string): void {
  const file = join(base, "cgroup.subtree_control");
  const enabled = new Set(readFileSync(file, "utf8").trim().split(" "));
  const missing = CONTROLLERS.filter((controller) => !enabled.has(controller));
  if (missing.length > 0) writeFileSync(file, missing.map((controller) => `+${controller}`).join(" "));
}
