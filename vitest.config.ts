import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";

/** Files with a process of their own: they measure its memory and time or look at its children, descriptors, variables and
 *  uncaught errors, or hardly use it. The longest come first, so that none is left for one worker at the end. */
const APART = [
  ...["test/e2e/pages", "test/e2e/examples", "test/package", "test/campaigns/kills", "test/campaigns/damage"],
  ...["src/collect/sandbox/docker/engine", "src/collect/rollout/agent/pool/pool", "test/campaigns/promises"],
  ...["test/campaigns/cluster", "src/collect/queue/nats/nats-queue", "test/e2e/agent-cheats"],
  ...["test/e2e/cluster-example", "src/collect/sandbox/bubblewrap/engine", "src/collect/sim/play/run"],
  ...["src/collect/sandbox/quickjs/engine", "test/gateway/secrets", "test/gateway/hostile", "test/s3-book"],
  ...["src/loop/tokens/token-loop", "test/s3-faults", "test/e2e/cluster", "test/gateway/full-disk"],
  ...[
    "src/book/decisions/read-log",
    "src/collect/gateway/redact/redact-call",
    "src/collect/gateway/wire/sse",
  ],
  ...["src/collect/sandbox/orphans", "src/collect/sandbox/descriptors", "src/collect/queue/nats/queue-view"],
  ...["src/collect/rollout/agent/program", "src/keep/replay/zarr/file-store", "src/store/log/append-log"],
  ...["src/collect/gateway/journal/journal", "src/collect/gateway/call/end-of-tick"],
].map((name) => `${name}.test.ts`);

/** The rest keeps nothing in its process: the start of one and the loading of modules are shared. Again the longest first. */
const TOGETHER = "together";
const LONGEST_TOGETHER = [
  ...[
    "test/e2e/demo",
    "test/e2e/loop",
    "test/e2e/loop-worlds",
    "test/e2e/judge",
    "test/e2e/report",
    "test/e2e/sim",
  ],
  ...["src/collect/sim/prove/prove", "src/judge/gate", "test/e2e/neural", "test/python-package"],
  ...["test/e2e/launch", "test/e2e/route", "test/old-books", "src/collect/rollout/record/gateway-recorder"],
].map((name) => `${name}.test.ts`);

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

/** Long enough for a machine with three times the load. */
const LIMITS = {
  ...{ pool: "forks", testTimeout: 60_000, hookTimeout: 60_000 },
  expect: { poll: { timeout: 10_000 } },
} as const;

export default defineConfig({
  test: {
    // Two more than the cores it is made for: tests wait for other processes and for time limits. Projects that took this over
    // with `extends` would keep the number whatever `--maxWorkers` says, and run the set-up again.
    maxWorkers: 4,
    globalSetup: "./test/support/memory-folder.ts",
    sequence: { sequencer: LongestFirst },
    reporters: ["default", "./test/support/closing-line.ts"],
    projects: [
      { test: { ...LIMITS, name: "apart", include: APART } },
      {
        test: {
          ...{ ...LIMITS, name: TOGETHER, isolate: false },
          include: ["src/**/*.test.ts", "test/**/*.test.ts"],
          exclude: APART,
        },
      },
    ],
  },
});
