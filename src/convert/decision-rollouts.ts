/** Routing rows as sealed rollouts, and back: one decision, one rollout; what the policy saw is its task.
 *  In: a row. Out: task, content and envelope with their blobs, a pure function of the row: importing a file twice adds
 *  nothing. Ids are kept where they are ids of ours, and else made of what is left of them and a hash.
 *  A propensity without the whole distribution is kept as the step's propensity. An outcome that is missing stays so. */
import { digestJson } from "../base/digest.ts";
import { RollbookError } from "../base/errors.ts";
import { idFault, parseId } from "../base/ids.ts";
import type { EnvironmentKey } from "../contract/environment.ts";
import { seal } from "../contract/record.ts";
import { type RecordedRollout, type SealedRollout, sealRecorded } from "../contract/rollout-draft.ts";
import type { Step } from "../contract/stream.ts";
import { Task } from "../contract/task.ts";
import type { RoutingRow, RoutingState } from "./routing-jsonl.ts";

/** The environment of decisions that were made elsewhere. */
export const DECISION_LOG = "decision-log@1" as EnvironmentKey;

export interface SealedDecision extends SealedRollout {
  readonly task: ReturnType<typeof taskOf>;
}

/** Refuses a row that is neither real nor synthetic: the book keeps them apart. */
export function sealDecision(row: RoutingRow): SealedDecision {
  const source = row.data_source;
  if (source === "unknown")
    throw new RollbookError(
      "bad-row",
      { decision: row.decision_id },
      `decision ${row.decision_id} is neither real nor synthetic. Say which with --data-source.`,
    );
  const task = taskOf(row, source);
  const rollout = sealRecorded(draftOf(row, { task, source }), [task]);
  return { ...rollout, task };
}

/** What the policy saw, where the task is one of these. */
export function stateOfTask(task: Task): Pick<RoutingState, "prompt" | "fields"> & {
  features: Readonly<Record<string, Record<string, number>>>;
} {
  const { fields = {}, features = {} } = task.payload as {
    fields?: RoutingState["fields"];
    features?: Record<string, Record<string, number>>;
  };
  return { prompt: typeof task.prompt === "string" ? task.prompt : "", fields, features };
}

function taskOf(row: RoutingRow, dataSource: "real" | "synthetic") {
  const { state, task_complexity_score, primary_failure_count } = row;
  const extra = Object.fromEntries(
    Object.entries({ task_complexity_score, primary_failure_count }).filter(([, value]) => value !== null),
  );
  const features = Object.fromEntries(
    state.candidates
      .filter(({ features: own }) => Object.keys(own).length > 0)
      .map((one) => [one.id, one.features]),
  );
  return seal(Task, {
    id: safeId(row.task_id),
    environment: DECISION_LOG,
    payload: {
      fields: { ...extra, ...state.fields },
      ...(Object.keys(features).length === 0 ? {} : { features }),
    },
    prompt: state.prompt,
    dataSource,
  });
}

function draftOf(
  row: RoutingRow,
  { task, source }: { task: ReturnType<typeof taskOf>; source: "real" | "synthetic" },
): RecordedRollout {
  const atMs = Math.max(0, Date.parse(row.timestamp));
  const family = safeId(row.agent_role === "" ? "imported" : row.agent_role);
  return {
    rolloutId: safeId(row.decision_id),
    environment: DECISION_LOG,
    task: { id: task.record.id, digest: task.digest },
    group: safeId(row.session_id),
    seed: 0n,
    dataSource: source,
    sampling: {},
    calls: [],
    streams: [{ level: "step", family, steps: [stepOf(row, family)] }],
    scores: Object.entries(row.state.terms).map(([name, term]) => ({ name: safeId(name), ...term })),
    ending: row.terminal ? { kind: "terminal" } : { kind: "truncated", limit: "turns" },
    envelope: { worker: parseId("import"), startedAtMs: atMs, endedAtMs: atMs },
  };
}

function stepOf(row: RoutingRow, family: string): Step {
  const { candidates } = row.state;
  const whole = candidates.every(({ probability }) => probability !== null);
  return {
    // Nobody knows the weights: the digest names the log's policy, and claims no more.
    revision: { id: parseId("logged"), digest: digestJson("rollbook.logged-policy.v1", family) },
    turn: 0,
    candidates: candidates.map(({ id, selectable, reasons, probability }) => ({
      id,
      selectable,
      reasons: reasons.map(safeId),
      probability: whole ? probability : null,
    })),
    chosen: candidates.findIndex(({ id }) => id === row.model_chosen),
    reward: row.reward,
    ...(whole || row.propensity === null ? {} : { propensity: row.propensity }),
  };
}

function safeId(text: string) {
  if (idFault(text) === undefined) return parseId(text);
  const rest = text.replaceAll(/[^A-Za-z0-9_.:+-]/g, "_").slice(0, 80);
  return parseId(`id-${rest}-${digestJson("rollbook.foreign-id.v1", text).slice(7, 23)}`);
}
