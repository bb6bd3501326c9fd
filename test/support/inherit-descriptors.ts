/** Runs sandbox-descriptors.ts in a process that inherits descriptors open on objects of the host, at the given
 *  numbers. Out: descriptors that programs in its sandbox found open beyond stdin, stdout and stderr; "" if there were
 *  none. */
import { spawn } from "node:child_process";
import { closeSync, openSync } from "node:fs";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import type { EngineName } from "../../src/collect/sandbox/sandbox.ts";

/** Targets of the inherited descriptors. */
export const OPEN_ON = ["/", "/etc", "/etc/passwd", "/proc/self", "pipe"] as const;

export interface Inherited {
  readonly fd: number;
  readonly on: (typeof OPEN_ON)[number];
}

export async function foundWithDescriptors(
  engine: EngineName,
  inherited: readonly Inherited[],
): Promise<string> {
  const script = fileURLToPath(new URL("./sandbox-descriptors.ts", import.meta.url));
  const last = Math.max(2, ...inherited.map(({ fd }) => fd));
  const stdio: ("ignore" | "pipe" | "inherit" | number)[] = Array.from({ length: last + 1 }, () => "ignore");
  stdio[1] = "pipe";
  stdio[2] = "inherit";
  const opened: number[] = [];
  for (const { fd, on } of inherited) {
    stdio[fd] = on === "pipe" ? "pipe" : openSync(on, "r");
    if (typeof stdio[fd] === "number") opened.push(stdio[fd]);
  }
  const child = spawn(process.execPath, ["--import", "tsx", script, engine], { stdio });
  for (const fd of opened) closeSync(fd);
  const [found, status] = await Promise.all([
    text(child.stdout!),
    new Promise<number | null>((resolve) => child.on("exit", resolve)),
  ]);
  if (status !== 0) throw new Error(`sandbox-descriptors.ts ended with ${status}`);
  return found;
}
