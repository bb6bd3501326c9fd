/** What a control group can do for a sandbox, whichever version the kernel speaks. */
import type { Limits } from "../sandbox.ts";

export type GroupLimits = Pick<Limits, "memoryBytes" | "pids" | "cpus">;

export interface Counters {
  readonly oomKills: number;
  readonly pidsRefused: number;
  readonly cpuMs: number | null;
  /** Since the last `resetPeak`. */
  readonly peakMemoryBytes: number | null;
}

export interface CgroupSlot {
  /** A process enters by writing "0" into each of these. */
  readonly procsFiles: readonly string[];
  limit(limits: GroupLimits): void;
  counters(): Counters;
  resetPeak(): void;
  pids(): number[];
  /** Everything that counts against the process limit: threads, and dead processes that were not awaited yet. */
  members(): number;
  /** Sends SIGKILL to every member; they may take a moment to go. */
  kill(): void;
  remove(): void;
}

/** What may be asked about a group that is not ours. */
export type CgroupView = Pick<CgroupSlot, "counters" | "members">;

export interface Cgroups {
  readonly version: 1 | 2;
  openSlot(): CgroupSlot;
  /** Reads the group that process `pid` is in; never changes it. */
  groupOf(pid: number): CgroupView;
}

export const CONTROLLERS = ["memory", "pids", "cpu"] as const;
export const CPU_PERIOD_US = 100_000;

/** Moves a fork bomb cannot outrun: kills until the group is empty, or says that it is not. */
export async function drain(slot: Pick<CgroupSlot, "pids" | "kill">, deadlineMs = 5_000): Promise<boolean> {
  const end = performance.now() + deadlineMs;
  while (slot.pids().length > 0) {
    if (performance.now() > end) return false;
    slot.kill();
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  return true;
}
