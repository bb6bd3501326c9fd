/** One table of many runs: reward weights × training decisions × arms × floors, all on the tasks of one suite.
 *  In: a suite and the values to vary. Out: a row for each combination. The tasks are drawn once. */
import { join } from "node:path";
import { DEFAULT_WEIGHTS } from "../../collect/sim/index.ts";
import type { ArmResult } from "../../judge/bench/index.ts";
import { runSuite } from "./run-suite.ts";
import { type Suite, suiteOf } from "./suite.ts";

interface Ablation {
  /** Decisions in a training log. */
  readonly decisions: readonly number[];
  /** Confidence floors of every learned arm. */
  readonly floors: readonly number[];
  /** Factors on the weights of cost and latency: 0 leaves the term out. */
  readonly costWeights: readonly number[];
  readonly latencyWeights: readonly number[];
}

interface AblationRow {
  readonly decisions: number;
  readonly costWeight: number;
  readonly latencyWeight: number;
  readonly best: number;
  readonly bestSingle: number;
  readonly arm: Pick<
    ArmResult,
    "name" | "learner" | "floor" | "exact" | "gapClosed" | "versus" | "costVersus"
  >;
}

export async function ablate(
  suite: Suite,
  variations: Ablation,
  options: { folder: string; source: string; log?: (line: string) => void },
): Promise<AblationRow[]> {
  const { folder, source, log } = options;
  const rows: AblationRow[] = [];
  let tasks: Suite["tasks"] = suite.tasks;
  let index = 0;
  for (const costWeight of variations.costWeights)
    for (const latencyWeight of variations.latencyWeights)
      for (const decisions of variations.decisions) {
        const own = join(folder, `run-${index++}`);
        const varied = vary({ ...suite, tasks }, { ...variations, costWeight, latencyWeight, decisions });
        const result = await runSuite(varied, { folder: own, source });
        tasks = { folder: join(own, "tasks") };
        log?.(`decisions ${decisions}, cost × ${costWeight}, latency × ${latencyWeight}: done`);
        const { best, bestSingle } = result.known;
        for (const arm of result.arms)
          rows.push({ decisions, costWeight, latencyWeight, best, bestSingle, arm });
      }
  return rows;
}

function vary(
  suite: Suite,
  {
    floors,
    costWeight,
    latencyWeight,
    decisions,
  }: Pick<Ablation, "floors"> & {
    costWeight: number;
    latencyWeight: number;
    decisions: number;
  },
): Suite {
  const { digest: _, ...config } = suite;
  const { cost, latency } = suite.reward ?? DEFAULT_WEIGHTS;
  return suiteOf(
    {
      ...config,
      reward: {
        cost: { ...cost, weight: cost.weight * costWeight },
        latency: { ...latency, weight: latency.weight * latencyWeight },
      },
      train: { ...suite.train, decisions },
      arms: suite.arms.flatMap((arm) =>
        floors.map((floor) => ({
          ...arm,
          floor,
          name: floors.length === 1 ? arm.name : `${arm.name}-${nameOf(floor)}`,
        })),
      ),
    },
    suite.suite,
    ".",
  );
}

/** A floor as a part of a name: 0.25 is 025. */
function nameOf(floor: number): string {
  return `floor-${String(floor).replaceAll(".", "")}`;
}
