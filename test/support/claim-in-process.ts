import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { expect } from "vitest";

/** The items that a separate process, which runs the build, claimed and completed. */
export async function claimInProcess(queue: string, worker: string): Promise<string[]> {
  const script = fileURLToPath(new URL("./claim-all.mjs", import.meta.url));
  const child = spawn(process.execPath, [script, queue, worker], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const ended = once(child, "exit");
  const items: string[] = [];
  for await (const line of createInterface({ input: child.stdout })) items.push(line);
  expect((await ended)[0]).toBe(0);
  return items;
}
