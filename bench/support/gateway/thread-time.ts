/** Processor time of other processes, from /proc: of the thread that serves, and of the process as a whole. Linux. */
import { readdirSync, readFileSync } from "node:fs";

/** Microseconds the main thread of a process has run. */
export function mainThreadUs(pid: number): number {
  return threadUs(pid, String(pid));
}

/** Microseconds its other threads have run: those that write the journal, seal, compile and collect garbage. */
export function otherThreadsUs(pid: number): number {
  const others = readdirSync(`/proc/${pid}/task`).filter((thread) => thread !== String(pid));
  return others.reduce((sum, thread) => sum + threadUs(pid, thread), 0);
}

function threadUs(pid: number, thread: string): number {
  const [nanoseconds] = readFileSync(`/proc/${pid}/task/${thread}/schedstat`, "latin1").split(" ");
  return Number(nanoseconds) / 1000;
}

/** Microseconds all threads of a process have run; ticks of 10 ms. */
export function processUs(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
  // The command in field 2 may hold spaces: count from its closing bracket. Fields 14 and 15 are user and system.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) * 10_000;
}
