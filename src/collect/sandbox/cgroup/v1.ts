/** Version 1: one directory per controller, so a slot is several directories with the same name. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { reasonOf } from "../../../base/index.ts";
import { claimName, staleNames } from "../owner.ts";
import { keyed, killOne, membership, readPids, removeGroup, unavailable, writeIfPresent } from "./files.ts";
import {
  type CgroupSlot,
  type Cgroups,
  type CgroupView,
  type Counters,
  CPU_PERIOD_US,
  type GroupLimits,
} from "./slot.ts";

export type V1Roots = ReadonlyMap<string, string>;

export class CgroupsV1 implements Cgroups {
  readonly version = 1;
  readonly #roots: V1Roots;

  constructor(roots: V1Roots) {
    this.#roots = roots;
  }

  openSlot(): CgroupSlot {
    const directories = [...new Set(this.#roots.values())];
    return attempt(() => {
      for (const directory of directories)
        for (const name of staleNames(directory)) removeGroup(join(directory, name));
      const [first, ...rest] = directories as [string, ...string[]];
      const name = claimName((candidate) => mkdirSync(join(first, candidate)));
      for (const directory of rest) mkdirSync(join(directory, name), { recursive: true });
      return new SlotV1(
        new Map([...this.#roots].map(([controller, root]) => [controller, join(root, name)])),
      );
    });
  }

  groupOf(pid: number): CgroupView {
    const directories = new Map<string, string>();
    for (const [controllers, path] of membership(pid))
      for (const controller of controllers.split(","))
        if (this.#roots.has(controller))
          directories.set(controller, join(this.#roots.get(controller)!, path));
    return new SlotV1(directories);
  }
}

class SlotV1 implements CgroupSlot {
  readonly procsFiles: readonly string[];
  readonly #directories: ReadonlyMap<string, string>;
  #memoryBytes = Number.POSITIVE_INFINITY;

  constructor(directories: ReadonlyMap<string, string>) {
    this.#directories = directories;
    this.procsFiles = [...new Set(directories.values())].map((directory) => join(directory, "cgroup.procs"));
  }

  limit({ memoryBytes, pids, cpus }: GroupLimits): void {
    // memory ≤ memory+swap must hold at all times, so the order depends on the direction of the change.
    const order = ["memory.limit_in_bytes", "memory.memsw.limit_in_bytes"];
    if (memoryBytes > this.#memoryBytes) order.reverse();
    if (memoryBytes !== this.#memoryBytes) {
      for (const file of order) {
        if (file.includes("memsw")) writeIfPresent(this.#path("memory", file), String(memoryBytes));
        else writeFileSync(this.#path("memory", file), String(memoryBytes));
      }
    }
    this.#memoryBytes = memoryBytes;
    writeFileSync(this.#path("pids", "pids.max"), String(pids));
    writeFileSync(this.#path("cpu", "cpu.cfs_quota_us"), String(Math.ceil(cpus * CPU_PERIOD_US)));
  }

  counters(): Counters {
    const cpu = this.#directories.has("cpuacct")
      ? Number(readFileSync(this.#path("cpuacct", "cpuacct.usage"), "utf8")) / 1e6
      : null;
    return {
      oomKills: keyed(this.#path("memory", "memory.oom_control"), "oom_kill"),
      pidsRefused: keyed(this.#path("pids", "pids.events"), "max"),
      cpuMs: cpu,
      peakMemoryBytes: Number(readFileSync(this.#path("memory", "memory.max_usage_in_bytes"), "utf8")),
    };
  }

  resetPeak(): void {
    writeFileSync(this.#path("memory", "memory.max_usage_in_bytes"), "0");
  }

  pids(): number[] {
    return readPids(this.#path("pids", "cgroup.procs"));
  }

  members(): number {
    return Number(readFileSync(this.#path("pids", "pids.current"), "utf8"));
  }

  kill(): void {
    for (const pid of this.pids()) killOne(pid);
  }

  remove(): void {
    for (const directory of new Set(this.#directories.values())) removeGroup(directory);
  }

  #path(controller: string, file: string): string {
    return join(this.#directories.get(controller)!, file);
  }
}

function attempt<T>(action: () => T): T {
  try {
    return action();
  } catch (cause) {
    throw unavailable(reasonOf(cause), cause);
  }
}
