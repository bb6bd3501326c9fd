/** CQL from a replay store that is larger than the heap limit. Measures if it ends, its memory, and if its weights
 *  equal those of a process with enough memory. */
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { digestBytes } from "../../src/base/digest.ts";
import { RollbookError } from "../../src/base/errors.ts";
import { type JudgePart, row } from "../judge/part.ts";
import { makeStore } from "../support/replay-build.ts";
import { inTempFolder } from "../support/temp-folder.ts";

const MAIN = fileURLToPath(new URL("../../dist/cli/main.js", import.meta.url));
const USAGE = new URL("../support/usage.mjs", import.meta.url).href;
const HEAP_MB = 96;
const ROOM_MB = 4096;
const ROWS = 48_000;
const STEPS = 500;

export const largeStore: JudgePart = {
  name: "store",
  run: ({ scale }) =>
    inTempFolder("rollbook-bench-store-", async (folder) => {
      const root = join(folder, "store");
      const rows = Math.ceil(ROWS * scale);
      await makeStore(root, 8 * rows, { context: 48, features: 120 });
      const megabytes = Number(spawnSync("du", ["-sm", root], { encoding: "utf8" }).stdout.split("\t")[0]);
      const [small, large] = [HEAP_MB, ROOM_MB].map((heapMb) => train(folder, { root, heapMb }));
      const same = small!.weights === large!.weights;
      const set = `store of ${megabytes} MB, ${rows} decisions, ${STEPS} minibatches of 64`;
      return [
        row(set, `CQL, heap limit ${HEAP_MB} MB: peak memory, MiB`, small!.peakMiB.toFixed(0)),
        row(set, "  processor, s", small!.cpuSeconds.toFixed(1)),
        row(set, `  same weights as with a heap of ${ROOM_MB} MB`, same ? "yes" : "no", {
          ...{ text: "yes", met: same },
        }),
      ];
    }),
};

interface StoreTrained {
  readonly peakMiB: number;
  readonly cpuSeconds: number;
  /** Digest of the checkpoint. */
  readonly weights: string;
}

function train(folder: string, { root, heapMb }: { root: string; heapMb: number }): StoreTrained {
  const [usage, out] = [join(folder, `usage-${heapMb}.json`), join(folder, `policy-${heapMb}`)];
  const words = `train cql --replay ${root} --split all --discount 0.9 --steps ${STEPS} --hidden 64 --out ${out} --id cql-1`;
  const args = [`--max-old-space-size=${heapMb}`, "--import", USAGE, MAIN, ...words.split(" ")];
  const { status, stderr } = spawnSync(process.execPath, args, {
    encoding: "utf8",
    env: { ...process.env, ROLLBOOK_USAGE: usage },
  });
  if (status !== 0)
    throw new RollbookError("bench-failed", { status, heapMb }, `train cql failed:\n${stderr}`);
  const { peakMiB, cpuSeconds } = JSON.parse(readFileSync(usage, "utf8")) as StoreTrained;
  return {
    peakMiB,
    cpuSeconds,
    weights: digestBytes("bench.weights", readFileSync(join(out, "policy.safetensors"))),
  };
}
