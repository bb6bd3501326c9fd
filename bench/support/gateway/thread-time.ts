/** Processor time of other processes, from /proc: of the serving thread, and of the whole process. Linux. */
import { readdirSync, readFileSync } from "node:fs";

/** Processor time of a process's main thread in microseconds. */
export function mainThreadUs(pid: number): number {
  return threadUs(pid, String(pid));
}

/** Processor time of the other threads in microseconds: they write the journal, seal, compile and collect garbage. */
export function otherThreadsUs(pid: number): number {
  const others = readdirSync(`/proc/${pid}/task`).filter((thread) => thread !== String(pid));
  return others.reduce((sum, thread) => sum + threadUs(pid, thread), 0);
}

function threadUs(pid: number, thread: string): number {
  const [nanoseconds] = readFileSync(`/proc/${pid}/task/${thread}/schedstat`, "latin1").split(" ");
  return Number(nanoseconds) / 1000;
}

/** Processor time of all threads of a process in microseconds; the resolution is a tick of 10 ms. */
export function processUs(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
  // The command in field 2 may contain spaces: count from its closing bracket. Fields 14 and 15 are user and system.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) * 10_000;
}
