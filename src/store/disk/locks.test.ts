import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, it, onTestFinished } from "vitest";
import { tryLock } from "./locks.ts";

const run = promisify(execFile);
const folder = () => {
  const path = mkdtempSync(join(tmpdir(), "rollbook-locks-"));
  onTestFinished(() => rmSync(path, { recursive: true }));
  return path;
};

it("a lock is held by one at a time, and free again once it is released", () => {
  const path = join(folder(), "x.lock");
  const lock = tryLock(path)!;
  expect(tryLock(path)).toBeUndefined();
  lock.release();
  tryLock(path)!.release();
});

it("a lock whose file is removed by its holder is held by one process at a time, and never fails", async () => {
  const path = join(folder(), "x.lock");
  const script = fileURLToPath(new URL("../../../test/support/lock-race.ts", import.meta.url));
  const race = () => run(process.execPath, ["--import", "tsx", script, path, "400"]);
  for (const { stdout } of await Promise.all([race(), race(), race()])) expect(stdout).toBe("0\n");
}, 60_000);

it("a lock in a folder that is not there is an error", () => {
  expect(() => tryLock(join(folder(), "gone", "x.lock"))).toThrow("x.lock");
});
