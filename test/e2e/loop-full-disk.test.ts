import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { MAIN } from "../../bench/support/build.ts";
import * as requirement from "../../scripts/setup/sandbox.mjs";
import { SMALL, writeLoop } from "../support/loop-world.ts";
import { describeNeeding } from "../support/needs.ts";

const DISK_BYTES = 24 * 1024 * 1024;

/** Starts a run on a full disk, makes room, and resumes the run. One script, because the disk exists only while the
 *  script runs. */
const SCRIPT = `
run() { "$NODE" "$MAIN" run "$1" --config "$CONFIG" --book "$DISK/book"; echo "exit $?"; }
dd if=/dev/zero of="$DISK/filler" bs=4k 2>/dev/null
truncate -s "-$ROOM" "$DISK/filler"
run start
rm "$DISK/filler"
run "$AGAIN"
`;

await describeNeeding(requirement, "a full disk under a training loop", () => {
  it.each([
    ["0k", "before the book is made", "start", "No step was recorded. Repeat the command"],
    ["1200k", "while it collects", "resume", "Continue it with `rollbook run resume"],
  ])(
    "with %s left stops the run %s, and with room again %s finishes it",
    (room, _, again, told) => {
      const folder = mkdtempSync(join(tmpdir(), "rollbook-loop-disk-"));
      onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
      const disk = mkdtempSync(join(tmpdir(), "rollbook-disk-"));
      onTestFinished(() => rmSync(disk, { recursive: true, force: true }));
      const env = {
        ...process.env,
        ...{ NODE: process.execPath, MAIN, DISK: disk, CONFIG: writeLoop(folder, { ...SMALL, windows: 1 }) },
        ...{ ROOM: room, AGAIN: again },
        ROLLBOOK_HOME: join(folder, "home"),
      };
      const small = ["--dev-bind", "/", "/", "--size", String(DISK_BYTES), "--tmpfs", disk];
      const { stdout, stderr } = spawnSync(
        "bwrap",
        [...small, "--die-with-parent", "--", "sh", "-c", SCRIPT],
        {
          ...{ env, encoding: "utf8" },
        },
      );
      expect(stderr).toMatch(/ENOSPC|disk is full/);
      expect(stderr).toContain(told);
      const [failed, resumed] = [stdout.indexOf("exit 1"), stdout.indexOf("exit 0")];
      expect([failed >= 0, resumed > failed, stdout]).toEqual([
        true,
        true,
        expect.stringContaining("1 of 1 window ended, done"),
      ]);
    },
    120_000,
  );
});
