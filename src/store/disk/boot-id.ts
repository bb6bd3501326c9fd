import { readFileSync } from "node:fs";

/** Identifies the current boot of the machine; undefined if the system has no boot id (not Linux). */
export function bootId(): string | undefined {
  try {
    return readFileSync("/proc/sys/kernel/random/boot_id", "latin1").trim();
  } catch {
    return undefined;
  }
}
