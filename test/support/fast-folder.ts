/** A temporary folder in memory where the machine has one: stores of thousands of small files take no disk time. */
import { accessSync, constants, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export function fastFolder(name: string): string {
  return mkdtempSync(join(base(), `rollbook-${name}-`));
}

function base(): string {
  try {
    accessSync("/dev/shm", constants.W_OK);
    return "/dev/shm";
  } catch {
    return tmpdir();
  }
}
