import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";

/** Files that take longest. They start first, so that none is left for one worker at the end. */
const LONGEST = [
  ...[
    "test/e2e/examples.test.ts",
    "test/e2e/pages.test.ts",
    "test/campaigns/damage.test.ts",
    "test/e2e/loop.test.ts",
    "test/campaigns/kills.test.ts",
  ],
  ...["test/e2e/demo.test.ts", "test/package.test.ts", "src/judge/gate.test.ts"],
  ...["test/e2e/learn.test.ts", "test/e2e/agent-cheats.test.ts"],
];

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification) => {
      const at = LONGEST.findIndex((path) => moduleId.endsWith(path));
      return at < 0 ? LONGEST.length : at;
    };
    return (await super.sort(files)).sort((a, b) => rank(a) - rank(b));
  }
}

export default defineConfig({
  test: {
    include: ["src/**/*.test.ts", "test/**/*.test.ts"],
    pool: "forks",
    // One more than the cores it is made for: tests wait for other processes much of the time.
    maxWorkers: 3,
    testTimeout: 60_000,
    hookTimeout: 60_000,
    sequence: { sequencer: LongestFirst },
    reporters: ["default", "./test/support/closing-line.ts"],
  },
});
