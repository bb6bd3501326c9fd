/** Logged decisions as sealed rollouts, and back. One decision is one rollout, and the policy's input is its task.
 *  In: a row. Out: task, content and envelope with their blobs. The result is a pure function of the row, so importing
 *  a file twice adds nothing. Valid ids are kept. Other ids become their valid characters and a hash. A propensity
 *  without the whole distribution is kept as the step's propensity. A missing outcome stays missing. A recorded cost
 *  becomes a term of weight 0, because there is no call to hold it. */
import { digestJson, type Id, idFault, parseId, RollbookError } from "../base/index.ts";
import {
  DECISION_LOG,
  IMPORTED_FAMILY,
  loggedPolicy,
  type RecordedRollout,
  type SealedRollout,
  type Step,
  seal,
  sealRecorded,
  Task,
} from "../contract/index.ts";
import { hasOwnCost, type LoggedRow, type RewardTerms } from "../learn/index.ts";
import type { DecisionContext } from "../policy/index.ts";

interface SealedDecision extends SealedRollout {
  readonly task: ReturnType<typeof taskOf>;
}

/** Refuses a row that is neither real nor synthetic, because the book keeps the two apart. */
export function sealDecision(row: LoggedRow): SealedDecision {
  const { source } = row;
  if (source === "unknown")
    throw new RollbookError(
      "no-data-source",
      { decision: row.id },
      `--data-source is missing: decision ${row.id} does not say whether it is real or synthetic, and a book keeps the two apart. Add --data-source real, or --data-source synthetic.`,
    );
  const task = taskOf(row, source);
  const draft = draftOf(row, { task, source });
  const policy = loggedPolicy(draft.streams[0]!.family);
  return { ...sealRecorded(draft, [task, policy]), task };
}

/** Reads the policy's input from a task that `sealDecision` made. */
export function stateOfTask(task: Task): DecisionContext & {
  features: Readonly<Record<string, Record<string, number>>>;
} {
  const { fields = {}, features = {} } = task.payload as {
    fields?: DecisionContext["fields"];
    features?: Record<string, Record<string, number>>;
  };
  return { prompt: typeof task.prompt === "string" ? task.prompt : "", fields, features };
}

function taskOf(row: LoggedRow, dataSource: "real" | "synthetic") {
  const { context, candidates } = row;
  const features = Object.fromEntries(
    candidates
      .filter(({ features: own }) => Object.keys(own).length > 0)
      .map((one) => [one.id, one.features]),
  );
  return seal(Task, {
    id: safeId(row.task),
    environment: DECISION_LOG,
    payload: {
      fields: context.fields,
      ...(Object.keys(features).length === 0 ? {} : { features }),
    },
    prompt: context.prompt,
    dataSource,
  });
}

function draftOf(
  row: LoggedRow,
  { task, source }: { task: ReturnType<typeof taskOf>; source: "real" | "synthetic" },
): RecordedRollout {
  const atMs = Math.max(0, row.atMs);
  const family = safeId(row.family === "" ? IMPORTED_FAMILY : row.family);
  return {
    rolloutId: safeId(row.id),
    environment: DECISION_LOG,
    task: { id: task.record.id, digest: task.digest },
    group: safeId(row.session),
    seed: 0n,
    dataSource: source,
    sampling: {},
    calls: [],
    streams: [{ level: "step", family, steps: [stepOf(row, family)] }],
    scores: Object.entries(termsOf(row)).map(([name, term]) => ({ name: safeId(name), ...term })),
    ending: row.terminal ? { kind: "terminal" } : { kind: "truncated", limit: "turns" },
    envelope: { worker: parseId("import"), startedAtMs: atMs, endedAtMs: atMs },
  };
}

function termsOf(row: LoggedRow): RewardTerms {
  // The row's own cost takes precedence, with and without a book.
  if (row.costUsd === undefined || hasOwnCost(row)) return row.terms;
  return { ...row.terms, cost: { value: row.costUsd, weight: 0 } };
}

function stepOf(row: LoggedRow, family: Id): Step {
  const { candidates } = row;
  const policy = loggedPolicy(family).record;
  const whole = candidates.every(({ probability }) => probability !== null);
  return {
    revision: { id: policy.id, digest: policy.digest },
    turn: 0,
    candidates: candidates.map(({ id, selectable, reasons, probability }) => ({
      id,
      selectable,
      reasons: reasons.map(safeId),
      probability: whole ? probability : null,
    })),
    chosen: row.chosen,
    reward: row.reward,
    ...(whole || row.propensity === null ? {} : { propensity: row.propensity }),
  };
}

function safeId(text: string) {
  if (idFault(text) === undefined) return parseId(text);
  const rest = text.replaceAll(/[^A-Za-z0-9_.:+-]/g, "_").slice(0, 80);
  return parseId(`id-${rest}-${digestJson("rollbook.foreign-id.v1", text).slice(7, 23)}`);
}
