/** Reads the facts of a demo from its book after the last window: those of any run, and those that only the demo has.
 *  In: the run. Out: a summary without the times of the steps after the windows. */
import { rewardReport } from "../../book/judge/index.ts";
import { useBook } from "../../book/open/index.ts";
import { readWorld } from "../../book/sim/index.ts";
import type { RunLearner, RunWindow } from "../../view/report/run-facts.ts";
import type { DemoLearner, DemoSummary, DemoWindow, StageTime } from "../../view/runs/demo-summary.ts";
import type { LoopConfig } from "../config.ts";
import { loopFolder, startsOf } from "../control.ts";
import type { RunState } from "../fold.ts";
import { readRun } from "../read-run.ts";
import { runFacts } from "../report/index.ts";

interface DemoRun {
  readonly config: LoopConfig;
  readonly world: Extract<LoopConfig["world"], { kind: "simulator" }>;
  readonly book: string;
}

export function summarizeDemo(
  { config, world, book: root }: DemoRun,
  checked: Pick<DemoSummary, "replay" | "pack">,
): Promise<DemoSummary> {
  return useBook(root, { mode: "read" }, async (book) => {
    const state = await readRun(book, config.run);
    const facts = await runFacts(book, { config, state, folder: loopFolder(root, config.run) });
    const windows = facts.windows.map(windowOf);
    const { ranking } = await rewardReport(book, {});
    return {
      ...facts,
      // A simulated world knows every exact value.
      ...{ optimum: facts.optimum!, behaviourValue: facts.behaviourValue!, servedValue: facts.servedValue! },
      ...{ gapClosed: facts.gapClosed!, digest: facts.digest!, windows, learners: windows.at(-1)!.learners },
      costQuality: facts.costQuality.map((point) => ({ ...point, reward: point.reward! })),
      tasks: readWorld(world).tasks.length,
      stages: stagesOf(state, startsOf({ root, run: config.run })),
      rewardAnalysis: ranking.map(({ arm, value }) => ({ model: arm, value })),
      ...checked,
    };
  });
}

function windowOf(window: RunWindow): DemoWindow {
  const { collectedValue, servedValue, reward, costUsd, learners } = window;
  return {
    ...{ ...window, collectedValue: collectedValue!, servedValue: servedValue!, reward: reward! },
    ...{ costUsd: costUsd!, learners: learners.map(learnerOf) },
  };
}

function learnerOf(learner: RunLearner): DemoLearner {
  return { ...learner, exactValue: learner.exactValue! };
}

const STAGES = [
  ["collecting", "sealed", "collect"],
  ["sealed", "scored", "admit and score"],
  ["scored", "trained", "train"],
  ["trained", "judged", "judge"],
] as const;

/** Duration of each stage, from the times of the transitions. */
function stagesOf({ windows }: RunState, starts: readonly number[]): StageTime[] {
  return windows.flatMap((window) =>
    STAGES.map(([from, to, stage]) => ({
      ...{ window: window.number, stage },
      ms: workedMs({ fromMs: window.need(from).envelope.atMs, toMs: window.need(to).envelope.atMs }, starts),
    })),
  );
}

/** Time that the process that ended a stage worked on it. `starts`: those of all processes. */
export function workedMs(
  { fromMs, toMs }: { fromMs: number; toMs: number },
  starts: readonly number[],
): number {
  return toMs - Math.max(fromMs, ...starts.filter((startMs) => startMs <= toMs));
}
