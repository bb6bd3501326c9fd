import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { type Digest, systemClock } from "../../base/index.ts";
import { openBook } from "../book.ts";

it.skipIf(process.platform === "win32")(
  "when the disk takes no more, put or flush says so, the session ends, and what was flushed is there",
  async () => {
    const root = mkdtempSync(join(tmpdir(), "rollbook-full-"));
    const script = `
      import { openBook } from ${JSON.stringify(new URL("../book.ts", import.meta.url).href)};
      const book = await openBook(${JSON.stringify(root)}, { clock: { nowMs: () => Date.now() } });
      const said = [];
      const attempt = async (work) => {
        try { said.push(await work()); } catch (error) { said.push(error.code); }
      };
      for (let i = 0; i < 100 && said.at(-1) !== "write-failed"; i++)
        await attempt(async () => {
          const digest = book.put("test.kind", new Uint8Array(10_000).fill(i));
          await book.flush();
          return digest;
        });
      await attempt(() => book.put("test.kind", new Uint8Array(1)));
      await attempt(() => book.flush());
      await attempt(() => book.close());
      console.log(JSON.stringify(said));`;
    try {
      // Limits files to 200 blocks of 1 KiB; a larger write fails instead of killing the process.
      const limited = `trap '' XFSZ; ulimit -f 200; exec "$0" --import tsx --input-type=module -e "$1"`;
      const child = spawnSync("bash", ["-c", limited, process.execPath, script], { encoding: "utf8" });
      expect(child.stderr).toBe("");
      const said = JSON.parse(child.stdout) as string[];
      expect(said.slice(-4)).toEqual(["write-failed", "session-failed", "session-failed", null]);
      const book = await openBook(root, { clock: systemClock });
      expect(said.length - 4).toBeGreaterThan(15);
      for (const digest of said.slice(0, -4)) expect(await book.has(digest as Digest)).toBe(true);
      await book.close();
    } finally {
      rmSync(root, { recursive: true, force: true });
    }
  },
);
