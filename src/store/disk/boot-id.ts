import { readFileSync } from "node:fs";

/** Names the time since the machine was started; undefined where the system does not tell (not Linux). */
export function bootId(): string | undefined {
  try {
    return readFileSync("/proc/sys/kernel/random/boot_id", "latin1").trim();
  } catch {
    return undefined;
  }
}
