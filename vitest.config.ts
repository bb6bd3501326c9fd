import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";

/** Files that take longest, the longest first. They start first, so that none is left for one worker at the end. */
const LONGEST = [
  ...["e2e/loop", "e2e/examples", "e2e/pages", "campaigns/kills", "e2e/demo", "package", "campaigns/damage"],
  ...["campaigns/promises", "e2e/loop-worlds", "s3-book", "e2e/agent-cheats", "e2e/sim", "e2e/judge"],
  ...["e2e/learn", "old-books", "e2e/neural", "e2e/one-path", "e2e/report", "gateway/sealing"],
].map((name) => `test/${name}.test.ts`);
const LONG_UNITS = [
  ...["collect/sandbox/docker/engine", "collect/rollout/agent/pool/pool", "collect/sim/prove/prove"],
  ...[
    "collect/sandbox/quickjs/engine",
    "collect/queue/nats/nats-queue",
    "judge/gate",
    "convert/batch/export-batch",
  ],
].map((name) => `src/${name}.test.ts`);

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const order = [...LONGEST, ...LONG_UNITS];
    const rank = ({ moduleId, project }: TestSpecification) => {
      const at = order.findIndex((path) => moduleId.endsWith(`/${path}`));
      // Files that share a process come last and together: a process is kept only for the next of them.
      return at < 0 ? order.length + Number(project.name === TOGETHER) : at;
    };
    return (await super.sort(files)).sort((a, b) => rank(a) - rank(b));
  }
}

/** Folders whose tests compute and keep nothing in their process: its start and the loading of modules are shared. */
const TOGETHER = "together";
const SHARED = ["base", "contract", "policy", "judge", "learn", "serve", "convert", "view"].map(
  (folder) => `src/${folder}/**/*.test.ts`,
);

const LIMITS = { pool: "forks", testTimeout: 60_000, hookTimeout: 60_000 } as const;

export default defineConfig({
  test: {
    // One more than the cores it is made for: tests wait for other processes much of the time. Projects that took this over
    // with `extends` would keep the number whatever `--maxWorkers` says, and run the set-up again.
    maxWorkers: 3,
    globalSetup: "./test/support/memory-folder.ts",
    sequence: { sequencer: LongestFirst },
    reporters: ["default", "./test/support/closing-line.ts"],
    projects: [
      {
        test: {
          ...LIMITS,
          name: "apart",
          include: ["src/**/*.test.ts", "test/**/*.test.ts"],
          exclude: SHARED,
        },
      },
      { test: { ...LIMITS, name: TOGETHER, include: SHARED, isolate: false } },
    ],
  },
});
