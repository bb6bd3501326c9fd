/** Loaded before a program: writes its peak memory (KiB) and processor time (µs) to the file in ROLLBOOK_USAGE at its end. */
import { writeFileSync } from "node:fs";

process.on("exit", () => {
  const { maxRSS, userCPUTime, systemCPUTime } = process.resourceUsage();
  const cpuSeconds = (userCPUTime + systemCPUTime) / 1e6;
  writeFileSync(process.env.ROLLBOOK_USAGE, JSON.stringify({ peakMiB: maxRSS / 1024, cpuSeconds }));
});
