/** Loaded before a program: writes its peak memory (MiB) and processor time (s) to the file in ROLLBOOK_USAGE at its end. */
import { readFileSync, writeFileSync } from "node:fs";

process.on("exit", () => {
  const { userCPUTime, systemCPUTime } = process.resourceUsage();
  const cpuSeconds = (userCPUTime + systemCPUTime) / 1e6;
  writeFileSync(process.env.ROLLBOOK_USAGE, JSON.stringify({ peakMiB: peakKiB() / 1024, cpuSeconds }));
});

/** `maxRSS` of a started program is at least the memory of the process that started it; on Linux VmHWM is its own peak. */
function peakKiB() {
  try {
    return Number(/^VmHWM:\s+(\d+) kB$/m.exec(readFileSync("/proc/self/status", "utf8"))[1]);
  } catch {
    return process.resourceUsage().maxRSS;
  }
}
