/** Replay: the dense view and the reader at growing sizes, then the Zarr arrays against Python's zarr 3: the same data,
 *  layout and disk, in turns, files in the cache of the operating system. Needs `node scripts/setup-python.mjs`. */
import * as fs from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { python } from "../scripts/python.mjs";
import { RollbookError } from "../src/base/errors.ts";
import { printTable } from "./support/interleave.ts";
import type { Bench } from "./support/programs.ts";
import { PythonPeer } from "./support/python-peer.ts";
import { growStores } from "./support/replay-build.ts";
import { compareZarr } from "./support/zarr-race.ts";

export const bench: Bench = {
  summary: "replay stores at growing sizes, and their Zarr arrays against Python's zarr 3",
  async run(args) {
    if (!fs.existsSync(python)) {
      throw new RollbookError(
        "no-python",
        { python },
        "there is no Python with zarr 3. Run: node scripts/setup-python.mjs",
      );
    }
    const root = fs.mkdtempSync(join(tmpdir(), "rollbook-bench-replay-"));
    const peer = new PythonPeer(python, fileURLToPath(new URL("support/zarr_peer.py", import.meta.url)));
    try {
      printTable(await growStores(root), args);
      printTable(await compareZarr(root, peer), args);
    } finally {
      peer.close();
      fs.rmSync(root, { recursive: true, force: true });
    }
  },
};
