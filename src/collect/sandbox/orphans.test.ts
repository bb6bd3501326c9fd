import { existsSync, readdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, vi } from "vitest";
import * as requirement from "../../../scripts/setup/sandbox.mjs";
import { abandonSandbox, running } from "../../../test/support/abandon.ts";
import { describeNeeding } from "../../../test/support/needs.ts";
import { openBubblewrap } from "./bubblewrap/engine.ts";
import { isAlive, ownerOf, ownerTag } from "./owner.ts";

await describeNeeding(requirement, "a bubblewrap pool killed with -9", () => {
  it("leaves no process, and its cgroups and directories are gone after the next start", async () => {
    const pid = await abandonSandbox("587.5", "bubblewrap");
    await vi.waitFor(() => expect(running("sleep 587.5")).toBe(0), 5_000);
    expect(leftBy(pid).length).toBeGreaterThan(0);
    const slot = await openBubblewrap().openSlot();
    expect(leftBy(pid)).toEqual([]);
    expect(leftBy(process.pid).length).toBeGreaterThan(0);
    await slot.close();
    expect(leftBy(process.pid)).toEqual([]);
  });
});

it("an owner is this process only: not a dead one, not one of another boot, not a later one of the same number", () => {
  const tag = ownerTag();
  expect(isAlive(tag)).toBe(true);
  const [boot, pid, start] = tag.split("-");
  expect(isAlive(`${boot}-${pid}-${Number(start) + 1}`)).toBe(false);
  expect(isAlive(`ffffffff-${pid}-${start}`)).toBe(false);
  expect(isAlive(`${boot}-4194304-${start}`)).toBe(false);
  expect(ownerOf(`rollbook-${tag}-12`)).toBe(tag);
  expect(["rollbook-sandbox-0", "other", `rollbook-${tag}`].map(ownerOf)).toEqual([
    undefined,
    undefined,
    undefined,
  ]);
});

/** Cgroups and directories named after this process, in every place where the kernel mounts groups. */
function leftBy(pid: number): string[] {
  const places = ["", "memory", "pids", "cpu", "cpuacct"].map((name) => join("/sys/fs/cgroup", name));
  return [...places, join(tmpdir(), `rollbook-sandbox-${process.getuid?.()}`)]
    .filter((place) => existsSync(place))
    .flatMap((place) => readdirSync(place).map((name) => join(place, name)))
    .filter((path) => new RegExp(`/rollbook-[0-9a-f]{8}-${pid}-\\d+-\\d+$`).test(path));
}
