import { spawnSync } from "node:child_process";
import { expect, it } from "vitest";
import * as requirement from "../../../scripts/setup/sandbox.mjs";
import { foundWithDescriptors, type Inherited, OPEN_ON } from "../../../test/support/inherit-descriptors.ts";
import { describeNeeding } from "../../../test/support/needs.ts";
import { closeAbove, SHELL } from "./descriptors.ts";

/** Low and high, adjacent and separate numbers, open on every type of file. */
const EVERYWHERE: readonly Inherited[] = [3, 6, 9, 10, 17, 60, 61, 62, 255, 256, 900].map((fd, i) => ({
  fd,
  on: OPEN_ON[i % OPEN_ON.length]!,
}));

await describeNeeding(requirement, "bubblewrap in a process that inherited descriptors", () => {
  it("shows none of them to a program", async () => {
    expect(await foundWithDescriptors("bubblewrap", EVERYWHERE)).toBe("");
  }, 60_000);
});

it("QuickJS shows no descriptor of its process to a program", async () => {
  expect(await foundWithDescriptors("quickjs", EVERYWHERE)).toBe("");
}, 60_000);

it.each([[SHELL], [["/bin/sh", "-c"]]])(
  "%j closes every descriptor above the last one kept, or starts nothing",
  (shell) => {
    const script = `${closeAbove(4)}\nfor fd in /proc/self/fd/*; do [ -e "$fd" ] && echo $fd; done; echo started`;
    const stdio = Array.from({ length: 61 }, (_, fd) => (fd === 4 || fd === 60 ? 0 : "ignore")) as "ignore"[];
    stdio[1] = "pipe" as "ignore";
    const { stdout, status } = spawnSync(shell[0]!, [...shell.slice(1), script], {
      stdio: [...stdio],
      encoding: "utf8",
    });
    const last = stdout.trim().split("\n");
    if (status === 0)
      expect(last).toEqual([
        "/proc/self/fd/0",
        "/proc/self/fd/1",
        "/proc/self/fd/2",
        "/proc/self/fd/4",
        "started",
      ]);
    else expect(stdout).toBe("");
  },
);
