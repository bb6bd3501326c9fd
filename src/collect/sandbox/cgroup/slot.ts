/** The operations of a control group that a sandbox needs, independent of the cgroup version. */
import type { Limits } from "../sandbox.ts";

export type GroupLimits = Pick<Limits, "memoryBytes" | "pids" | "cpus">;

export interface Counters {
  readonly oomKills: number;
  readonly pidsRefused: number;
  readonly cpuMs: number | null;
  /** Peak since the last `resetPeak`. */
  readonly peakMemoryBytes: number | null;
}

export interface CgroupSlot {
  /** A process enters the group by writing "0" into each of these files. */
  readonly procsFiles: readonly string[];
  limit(limits: GroupLimits): void;
  counters(): Counters;
  resetPeak(): void;
  pids(): number[];
  /** Number of members that count against the process limit: threads, and dead processes without a `wait`. */
  members(): number;
  /** Sends SIGKILL to every member. Members may take a moment to exit. */
  kill(): void;
  remove(): void;
}

/** Read-only operations, for a group that is not ours. */
export type CgroupView = Pick<CgroupSlot, "counters" | "members">;

export interface Cgroups {
  readonly version: 1 | 2;
  openSlot(): CgroupSlot;
  /** Reads the group of process `pid`. Never changes the group. */
  groupOf(pid: number): CgroupView;
}

export const CONTROLLERS = ["memory", "pids", "cpu"] as const;
export const CPU_PERIOD_US = 100_000;

/** Kills repeatedly, so that a fork bomb cannot outrun it. Returns false if the group is not empty at the deadline. */
export async function drain(slot: Pick<CgroupSlot, "pids" | "kill">, deadlineMs = 5_000): Promise<boolean> {
  const end = performance.now() + deadlineMs;
  while (slot.pids().length > 0) {
    if (performance.now() > end) return false;
    slot.kill();
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  return true;
}
