import { spawnSync } from "node:child_process";
import * as requirement from "../../../../scripts/setup/sandbox.mjs";
import { sandboxContract } from "../../../../test/contracts/sandbox.ts";
import { describeNeeding } from "../../../../test/support/needs.ts";
import { openBubblewrap } from "./engine.ts";

await describeNeeding(requirement, "where bubblewrap is installed", () => {
  sandboxContract("bubblewrap", {
    open: async () => openBubblewrap(),
    covers: [
      ...(["write-outside", "host-files", "network", "environment", "memory", "processes"] as const),
      ...(["time", "output", "scratch", "signals", "privilege", "leftovers"] as const),
    ],
    strike: async () => {
      const { stdout } = spawnSync("pgrep", ["-P", String(process.pid), "-x", "bwrap"], { encoding: "utf8" });
      for (const pid of stdout.trim().split("\n")) process.kill(Number(pid), "SIGKILL");
    },
  });
});
