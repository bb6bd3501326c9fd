/** Replay: the dense view and the reader at growing sizes, then the Zarr arrays compared with Python's zarr 3: the same
 *  data, layout and disk, in turns, with files in the operating system's cache. Installs that Python in .cache/python
 *  if it is missing. */
import { execFileSync } from "node:child_process";
import * as fs from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { hasZarr, python } from "../scripts/python.mjs";
import { printTable } from "./support/interleave.ts";
import type { Bench } from "./support/programs.ts";
import { PythonPeer } from "./support/python-peer.ts";
import { growStores } from "./support/replay-build.ts";
import { compareZarr } from "./support/zarr-race.ts";

export const bench: Bench = {
  summary: "replay stores at growing sizes, and their Zarr arrays against Python's zarr 3 (--only PATTERN)",
  async run(args) {
    if (!hasZarr()) execFileSync(process.execPath, ["scripts/setup-python.mjs"], { stdio: "inherit" });
    const root = fs.mkdtempSync(join(tmpdir(), "rollbook-bench-replay-"));
    const peer = new PythonPeer(python, fileURLToPath(new URL("support/zarr_peer.py", import.meta.url)));
    try {
      const { values } = parseArgs({
        args,
        options: { only: { type: "string" }, json: { type: "boolean" } },
      });
      if (values.only === undefined) printTable(await growStores(root), args);
      process.stderr.write(`Node ${process.versions.node}\n`);
      printTable(await compareZarr(root, { peer, ...values }), args);
    } finally {
      peer.close();
      fs.rmSync(root, { recursive: true, force: true });
    }
  },
};
