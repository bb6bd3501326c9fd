/** Preloaded into a program:
 *  at its end, writes peak memory (MiB) and processor time (s) to the file in ROLLBOOK_USAGE. */
import { readFileSync, writeFileSync } from "node:fs";

process.on("exit", () => {
  const { userCPUTime, systemCPUTime } = process.resourceUsage();
  const cpuSeconds = (userCPUTime + systemCPUTime) / 1e6;
  writeFileSync(process.env.ROLLBOOK_USAGE, JSON.stringify({ peakMiB: peakKiB() / 1024, cpuSeconds }));
});

/** `maxRSS` of a child is at least the memory of its parent at the start. On Linux, VmHWM is the child's own peak. */
function peakKiB() {
  try {
    return Number(/^VmHWM:\s+(\d+) kB$/m.exec(readFileSync("/proc/self/status", "utf8"))[1]);
  } catch {
    return process.resourceUsage().maxRSS;
  }
}
