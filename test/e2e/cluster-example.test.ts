import { spawn } from "node:child_process";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import { expect, it } from "vitest";
import * as natsServer from "../../scripts/setup/nats-server.mjs";
import * as versitygw from "../../scripts/setup/versitygw.mjs";
import { allOf, describeNeeding } from "../support/needs.ts";

const TASKS = 3;

await describeNeeding(allOf(natsServer, versitygw), "the example cluster", () => {
  it("loses nothing while one process of each kind is killed, and leaves none behind", async () => {
    const child = spawn(process.execPath, ["examples/cluster/run.mjs", String(TASKS)], {
      stdio: ["ignore", "pipe", "pipe"],
    });
    const [printed, told] = await Promise.all([text(child.stdout), text(child.stderr), once(child, "close")]);
    expect([child.exitCode, printed], told).toEqual([0, expect.stringMatching(/^lost: nothing$/m)]);
    expect(printed).toMatch(
      new RegExp(`^ +${4 * TASKS} {2}in the book with a receipt that accepts it$`, "m"),
    );
    const killed = [...told.matchAll(/kill -9 ([a-z0-9]+)[-a-z0-9]* \((\d+)\)/g)];
    expect(killed.map(([, name]) => name)).toEqual(["worker", "nats", "gateway", "s3", "loop"]);
    for (const [, , pid] of killed) expect(() => process.kill(Number(pid), 0)).toThrow("ESRCH");
  }, 120_000);
});
