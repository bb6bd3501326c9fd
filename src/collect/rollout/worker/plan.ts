/** Plans rows as work: tasks, assignments and queue items with ids that follow from content alone. The same launch
 *  planned twice is therefore the same work. In: rows, launch settings. Out: sealed records and items. Pure. A row that
 *  appears twice is two assignments of one task, which differ in their visit. */
import {
  type Digest,
  digestJson,
  given,
  type Id,
  type Json,
  parseId,
  RollbookError,
} from "../../../base/index.ts";
import {
  Assignment,
  type EnvironmentKey,
  type Sealed,
  seal,
  type Task,
  taskTitle,
} from "../../../contract/index.ts";
import type { QueueItem } from "../../queue/index.ts";
import { type RolloutLimits, refuseKeys } from "../agent/index.ts";
import { type RowForm, sealTask, workItems } from "../work/index.ts";

/** Settings shared by every rollout of a launch. All of them enter the ids. */
export interface LaunchSettings {
  readonly exp: string;
  readonly agent: Digest;
  readonly samples: number;
  readonly seed: bigint;
  readonly environment: EnvironmentKey;
  readonly dataSource: "real" | "synthetic";
  readonly modelId?: string;
  readonly baseUrl?: string;
  /** Additional fields of `rollout_config`. */
  readonly extra?: Readonly<Record<string, Json>>;
  readonly limits?: RolloutLimits;
  /** The named router that chooses among the models of a route. The gateway reads it as a record of the book. */
  readonly router?: Digest;
}

export interface Overrides {
  readonly config?: Readonly<Record<string, Json>>;
  readonly limits?: RolloutLimits;
}

export interface PlannedRollout {
  readonly id: Id;
  readonly row: number;
  readonly sample: number;
  readonly task: Id;
  /** Null: the task has no title. */
  readonly taskTitle: string | null;
  readonly group: Id;
  readonly item: QueueItem;
}

/** A sample to run again: its group, and the number of results it has so far. */
export interface FailedSample {
  readonly group: Id;
  readonly sample: number;
  readonly results: number;
}

interface PlannedRow {
  readonly task: Sealed<Task>;
  readonly assignments: readonly PlannedAssignment[];
  readonly warning?: string;
}

interface PlannedAssignment {
  readonly assignment: Sealed<Assignment>;
  readonly rollouts: readonly PlannedRollout[];
}

/** Payload of a queue item. Bulk data is in the book. */
export interface WorkOrder {
  readonly assignment: Digest;
  readonly sample: number;
  readonly extra: OrderExtra;
}

interface OrderExtra {
  readonly exp: string;
  readonly modelId?: string;
  readonly baseUrl?: string;
  readonly extra?: Readonly<Record<string, Json>>;
  readonly overrides?: Readonly<Record<string, Json>>;
  readonly limits?: RolloutLimits;
  readonly router?: Digest;
}

interface PlanOptions {
  readonly form?: RowForm;
  /** The file of the rows, for messages. */
  readonly source?: string;
  readonly retries?: (task: Id) => readonly FailedSample[];
}

/** With `retries`, plans only these samples of a task, in their own groups. */
export function planner(settings: LaunchSettings, { form = "auto", source, retries }: PlanOptions = {}) {
  refuseKeys(settings.extra, "the configuration");
  if (!Number.isSafeInteger(settings.samples) || settings.samples < 1)
    throw new RollbookError(
      "bad-samples",
      { samples: settings.samples },
      `${settings.samples} samples are none.`,
    );
  const launch = digestJson("rollbook.launch.v1", settingsJson(settings));
  const visits = new Map<Digest, number>();
  let rows = 0;

  return (row: unknown, overrides: Overrides = {}): PlannedRow => {
    const index = rows++;
    const where = `row ${index + 1}${source === undefined ? "" : ` of ${source}`}`;
    refuseKeys(overrides.config, `the overrides of ${where}`);
    const { environment, dataSource } = settings;
    const { warning, ...task } = sealTask(row, { environment, dataSource, form, where });
    const visit = visits.get(task.digest) ?? 0;
    visits.set(task.digest, visit + 1);
    const identity = [launch, task.digest, visit, overridesJson(overrides)];
    const common = { settings, overrides, task, row: index };
    return {
      task,
      assignments:
        retries === undefined
          ? [planAssignment({ ...common, identity })]
          : visit > 0 // the first visit plans the retries of all visits
            ? []
            : retries(task.record.id).map((again) => planAssignment({ ...common, identity, again })),
      ...(warning === undefined ? {} : { warning }),
    };
  };
}

interface AssignmentPlan {
  readonly settings: LaunchSettings;
  readonly overrides: Overrides;
  readonly task: Sealed<Task>;
  readonly row: number;
  readonly identity: readonly Json[];
  readonly again?: FailedSample;
}

function planAssignment({ again, identity, ...plan }: AssignmentPlan): PlannedAssignment {
  const { settings, task } = plan;
  const whole = again === undefined ? identity : [...identity, { ...again }];
  const name = digestJson("rollbook.assignment-id.v1", whole as Json).slice(7, 23);
  const assignment = seal(Assignment, {
    id: parseId(`a-${name}`),
    environment: settings.environment,
    task: { id: task.record.id, digest: task.digest },
    group: again?.group ?? parseId(`g-${name}`),
    samples: Math.max(settings.samples, (again?.sample ?? 0) + 1),
    seed: settings.seed,
  });
  const rollouts = planRollouts({ ...plan, assignment });
  return {
    assignment,
    rollouts: again === undefined ? rollouts : rollouts.filter(({ sample }) => sample === again.sample),
  };
}

/** Items of an agent are for workers with exactly this agent. */
export function laneOf(agent: Digest): string {
  return `agent-${agent.slice(7, 23)}`;
}

function planRollouts(plan: {
  settings: LaunchSettings;
  overrides: Overrides;
  task: Sealed<Task>;
  assignment: Sealed<Assignment>;
  row: number;
}): PlannedRollout[] {
  const { settings, overrides, task, assignment, row } = plan;
  const { agent, exp, modelId, baseUrl, extra, router } = settings;
  const order: OrderExtra = {
    ...{ exp, limits: { ...settings.limits, ...overrides.limits } },
    ...given({ modelId, baseUrl, extra, router, overrides: overrides.config }),
  };
  const items = workItems(assignment, { lane: laneOf(agent), extra: order as unknown as Json });
  const common = {
    ...{ row, task: task.record.id, taskTitle: taskTitle(task.record) },
    group: assignment.record.group!,
  };
  return items.map((item, sample) => ({ ...common, id: parseId(item.id), sample, item }));
}

function settingsJson(settings: LaunchSettings): Json {
  const { exp, agent, samples, seed, environment, dataSource, modelId, baseUrl, extra, limits } = settings;
  const { router } = settings;
  return {
    ...{ exp, agent, samples, environment, dataSource },
    seed: String(seed),
    modelId: modelId ?? null,
    baseUrl: baseUrl ?? null,
    extra: (extra ?? {}) as Json,
    limits: (limits ?? {}) as Json,
    // Absent, not null, so that a launch without a router keeps its earlier ids.
    ...(router === undefined ? {} : { router }),
  };
}

function overridesJson({ config = {}, limits = {} }: Overrides): Json {
  return { config, limits } as unknown as Json;
}
