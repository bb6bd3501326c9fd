import { existsSync } from "node:fs";
import { totalmem } from "node:os";
import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";
import { ENGINE_OPTIONS } from "./test/support/engine-options.ts";

/** Files with a process of their own: they measure its memory and time or look at its children, descriptors, variables and
 *  uncaught errors, or hardly use it. The longest come first, so that none is left for one worker at the end. */
const APART = [
  ...["test/e2e/pages", "test/campaigns/damage", "src/collect/sandbox/docker/engine", "test/campaigns/kills"],
  ...["test/campaigns/cluster", "test/gateway/secrets", "src/collect/rollout/agent/pool/pool"],
  ...["test/e2e/cluster-example", "src/collect/sandbox/quickjs/engine", "src/collect/queue/nats/nats-queue"],
  ...["test/gateway/full-disk", "src/collect/sim/play/run", "test/e2e/cluster"],
  ...["src/collect/sandbox/bubblewrap/engine", "test/gateway/hostile"],
  ...["src/collect/gateway/redact/redact-call", "test/s3-faults", "src/collect/gateway/wire/sse"],
  ...["src/collect/rollout/agent/program", "src/collect/sandbox/descriptors", "src/collect/queue/queue-view"],
  ...["src/collect/sandbox/orphans", "src/keep/replay/zarr/file-store", "src/store/log/append-log"],
  ...["src/book/decisions/read-log", "src/collect/gateway/journal/journal"],
  "src/collect/gateway/call/end-of-tick",
].map((name) => `${name}.test.ts`);

/** The rest keeps nothing in its process: the start of one and the loading of modules are shared. Again the longest first. */
const TOGETHER = "together";
const LONGEST_TOGETHER = [
  ...["test/e2e/loop", "test/e2e/examples", "test/e2e/loop-worlds", "test/e2e/demo", "test/e2e/judge"],
  ...["test/s3-replay", "test/e2e/sim", "test/package", "src/judge/gate", "test/e2e/launch-gateway"],
  ...["test/convert/tables", "src/learn/value/value", "src/keep/replay/python", "test/python-package"],
  ...["src/collect/rollout/record/gateway-recorder", "src/keep/replay/zarr/python", "test/gateway/faults"],
  ...["src/collect/sim/prove/prove", "test/e2e/route", "test/convert/traces", "test/convert/readers"],
  ...["src/convert/batch/export-batch", "test/e2e/loop-full-disk", "test/e2e/viewer", "test/e2e/launch"],
  ...["test/e2e/neural", "test/gateway/sealing", "test/old-books", "src/judge/judge-chains"],
  ...["test/campaigns/promises", "src/keep/replay/validate/validate", "test/e2e/agent-cheats"],
  ...["src/collect/rollout/launch/launcher", "test/e2e/value-policies", "src/book/train/learn-from-store"],
  ...["src/loop/pack/pack", "test/e2e/serve-walk", "test/e2e/slime", "test/e2e/batch-export"],
  ...["test/e2e/whole-chains", "test/s3-book", "src/loop/tokens/token-loop", "test/campaigns/runners"],
  ...["src/store/gc/gc", "test/e2e/launch-examples", "src/store/damage", "test/e2e/report"],
].map((name) => `${name}.test.ts`);

for (const path of [...APART, ...LONGEST_TOGETHER])
  if (!existsSync(path))
    throw new Error(`vitest.config.ts names ${path}, which does not exist. Correct the list.`);

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const order = [...APART, ...LONGEST_TOGETHER];
    // A process is kept only for the next file: those that share one come after the others.
    const rank = ({ moduleId }: TestSpecification) => {
      const at = order.findIndex((path) => moduleId.endsWith(`/${path}`));
      return at < 0 ? order.length : at;
    };
    return (await super.sort(files)).sort((a, b) => rank(a) - rank(b));
  }
}

/** Three for each of two cores: tests wait much of their time for other processes and for time limits. Fewer where memory is
 *  short: each worker starts processes of its own. */
const WORKERS = totalmem() < 12 * 2 ** 30 ? 4 : 6;

/** Long enough for a machine with three times the load. */
const LIMITS = {
  ...{ pool: "forks", testTimeout: 60_000, hookTimeout: 60_000 },
  expect: { poll: { timeout: 10_000 } },
} as const;

export default defineConfig({
  test: {
    // Projects that took this over with `extends` would keep the number whatever `--maxWorkers` says, and run the set-up again.
    maxWorkers: WORKERS,
    globalSetup: ["./test/support/memory-folder.ts", "./test/support/python-bytecode.ts"],
    sequence: { sequencer: LongestFirst },
    reporters: ["default", "./test/support/closing-line.ts"],
    projects: [
      { test: { ...LIMITS, name: "apart", include: APART } },
      {
        test: {
          ...{ ...LIMITS, name: TOGETHER, isolate: false },
          execArgv: [...ENGINE_OPTIONS],
          include: ["src/**/*.test.ts", "test/**/*.test.ts"],
          exclude: APART,
        },
      },
    ],
  },
});
