/** Renders simulated runs for a terminal.
 *  In: results and exact values. Out: text. */
import type { LaunchReport } from "../../book/collect/index.ts";
import {
  type ExactValues,
  type FamilySummary,
  type ObservedReward,
  sayDistance,
  sayObserved,
} from "../../book/sim/index.ts";
import type { Progress } from "../../collect/rollout/index.ts";
import {
  type Behaviour,
  DIFFICULTIES,
  type FamilyValues,
  type KnownValues,
  type TasksMeta,
} from "../../collect/sim/index.ts";
import { figure, plural, table } from "../format.ts";
import { failedText, renderFailures } from "./launch-view.ts";

export function renderSimulated(ran: {
  progress: Progress;
  families: readonly FamilySummary[];
  values: ExactValues | undefined;
  failures: LaunchReport["failures"];
}): string {
  return renderRun(ran.progress, ran.families) + renderValues(ran.values) + renderFailures(ran);
}

/** Renders exact values of every model by family. A router never sees them. */
function renderFamilies(families: readonly FamilyValues[]): string {
  if (families.length === 0) return "";
  return table(families, [
    { title: "family", cell: (each) => each.family },
    { title: "tasks", align: "right", cell: (each) => String(each.tasks) },
    ...Object.keys(families[0]!.single).map((name) => ({
      ...{ title: name, align: "right" as const },
      cell: (each: FamilyValues) => each.single[name]!.toFixed(3),
    })),
    { title: "best", align: "right", cell: (each) => each.best.toFixed(3) },
  ]);
}

export function renderCollected(options: {
  progress: Progress;
  families: readonly FamilyValues[];
  policy: Behaviour;
  values: KnownValues & { behaviour: number };
  observed: ObservedReward;
  z: number | null;
}): string {
  const { progress, families, policy, values, observed, z } = options;
  const { best, bestSingle, uniform, behaviour } = values;
  const rows = [
    { name: "best policy", value: best },
    { name: `best single model (${bestSingle.model})`, value: bestSingle.value },
    { name: "uniform choice", value: uniform },
    { name: `behaviour (${policy})`, value: behaviour },
  ];
  const exact = table(rows, [
    { title: "expected reward", cell: (row) => row.name },
    { title: "exact", align: "right", cell: (row) => row.value.toFixed(4) },
  ]);
  return `${renderFamilies(families)}${exact}observed: ${sayObserved(observed)} over ${plural(observed.count, "rollout")}, ${progress.done} sealed\n${sayDistance(z)}`;
}

function renderValues(values: ExactValues | undefined): string {
  if (values === undefined) return "";
  const { expected, best, bestSingle } = values;
  return `expected reward: ${expected.toFixed(4)} exactly; best policy ${best.toFixed(4)}, best single model ${bestSingle.value.toFixed(4)} (${bestSingle.model})\n`;
}

function renderRun(progress: Progress, families: readonly FamilySummary[]): string {
  const { done, total, earlier, truncated } = progress;
  const parts = [
    `${done} of ${plural(total, "rollout")} sealed`,
    ...(earlier > 0 ? [`${earlier} of them earlier`] : []),
    ...(truncated > 0 ? [`${truncated} truncated`] : []),
    ...failedText(progress),
  ];
  return `${table(families, [
    { title: "family", cell: (each) => each.family },
    { title: "rollouts", align: "right", cell: (each) => String(each.rollouts) },
    { title: "passed", align: "right", cell: (each) => String(each.passed) },
    { title: "rate", align: "right", cell: (each) => each.passRate.toFixed(3) },
    {
      title: "95 %",
      align: "right",
      cell: ({ interval }) => `${interval[0].toFixed(3)} … ${interval[1].toFixed(3)}`,
    },
    {
      title: "reward",
      align: "right",
      cell: (each) => (each.meanReward === null ? "" : each.meanReward.toFixed(3)),
    },
    { title: "cost", align: "right", cell: (each) => `$${figure(each.costUsd)}` },
  ])}${parts.join(", ")}\n`;
}

/** Renders the output of `sim generate`: tasks by family and difficulty, and the reasons for replaced draws. */
export function renderTasks(out: string, meta: TasksMeta): string {
  const rows = Object.keys(meta.counts);
  const count = (family: string, difficulty: number) => meta.counts[family]?.[difficulty] ?? 0;
  const rejected = (family: string) =>
    Object.values(meta.rejections[family] ?? {}).reduce((a, b) => a + b, 0);
  const families = table(rows, [
    { title: "FAMILY", cell: (family) => family },
    ...DIFFICULTIES.map((difficulty) => ({
      title: `D${difficulty}`,
      align: "right" as const,
      cell: (family: string) => String(count(family, difficulty)),
    })),
    {
      title: "TASKS",
      align: "right",
      cell: (family) => String(DIFFICULTIES.reduce((sum, d) => sum + count(family, d), 0)),
    },
    { title: "REPLACED", align: "right", cell: (family) => String(rejected(family)) },
  ]);
  const reasons = Object.entries(meta.rejections).flatMap(([family, by]) =>
    Object.entries(by).map(([reason, times]) => ({ family, reason, times })),
  );
  const why = table(reasons, [
    { title: "REPLACED", cell: (each) => each.family },
    { title: "DRAWS", align: "right", cell: (each) => String(each.times) },
    { title: "BECAUSE", cell: (each) => each.reason },
  ]);
  const proved =
    meta.engine === null
      ? "not checked in a sandbox"
      : `each checked twice in ${meta.engine}: its reference solution passes, its wrong solutions fail`;
  return `${families}\n${reasons.length === 0 ? "" : `${why}\n`}${plural(meta.tasks, "task")} in ${out}, ${proved}\n`;
}
