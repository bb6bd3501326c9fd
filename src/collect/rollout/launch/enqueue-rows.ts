/** Queues rows as work. In: rows, and the settings of this launch. Out: tasks and assignments in the book, items in the
 *  queue, a callback for each planned rollout. Tasks are durable before the queue names them. Runs no rollouts. */
import { given, type Id } from "../../../base/index.ts";
import { Assignment, type Signer, Task } from "../../../contract/index.ts";
import { type Book, makeSealer } from "../../../store/index.ts";
import type { WorkQueue } from "../../queue/index.ts";
import type { Agent } from "../agent/index.ts";
import { agentName, agentRevision } from "../record/index.ts";
import type { RowForm } from "../work/index.ts";
import {
  type FailedSample,
  type LaunchSettings,
  type Overrides,
  type PlannedRollout,
  planner,
  type RecentRecords,
} from "../worker/index.ts";
import { type Earlier, EarlierLaunch, type EarlierRuns } from "./earlier-launch.ts";

export interface EnqueueOptions extends Omit<LaunchSettings, "agent"> {
  readonly agent: Agent;
  readonly book: Pick<Book, "has" | "put" | "flush">;
  readonly queue: Pick<WorkQueue, "enqueue">;
  readonly signer: Signer;
  readonly form?: RowForm;
  /** The file of the rows, for messages. */
  readonly source?: string;
  /** Configuration and limits of a single row. */
  readonly override?: (row: unknown, index: number) => Overrides | undefined;
  /** The samples of a task to run again. If given, no other samples run. */
  readonly retries?: (task: Id) => readonly FailedSample[];
  /** Earlier rollouts of the book, to detect that the experiment ran these tasks with another agent or other options. */
  readonly earlierRuns?: EarlierRuns;
  readonly log?: (message: string) => void;
}

/** Approximate number of rollouts per commit. */
const CHUNK = 256;

export async function enqueueRows(
  rows: Iterable<unknown> | AsyncIterable<unknown>,
  options: EnqueueOptions,
  {
    signal,
    onRollout,
    records,
  }: {
    signal: AbortSignal;
    onRollout: (rollout: PlannedRollout) => void;
    /** Receives the records that the workers of this process will read first. */
    records: Pick<RecentRecords, "add">;
  },
): Promise<void> {
  const { book, queue, form, source, retries, override, log, agent, signer } = options;
  const plan = planner({ ...options, agent: agent.digest }, given({ form, source, retries }));
  // A retry of failures implies that the launch was changed on purpose.
  const runs = retries === undefined ? options.earlierRuns : undefined;
  const earlier =
    runs && new EarlierLaunch({ ...options, agent: agent.digest }, { book, runs, ...given({ form }) });
  const sealer = makeSealer(book, signer);
  let chunk: PlannedRollout[] = [];
  let puts: Promise<void>[] = [];
  const flush = async () => {
    await Promise.all(puts);
    await queue.enqueue(chunk.map(({ item }) => item));
    [chunk, puts] = [[], []];
  };
  let revisions = [agentRevision(agent)]; // stored with the first row
  let index = 0;
  try {
    for await (const row of rows) {
      if (signal.aborted) break;
      const overrides = override?.(row, index++);
      const { task, assignments, warning } = plan(row, overrides);
      if (warning !== undefined) log?.(warning);
      const [first] = assignments;
      const planned = first && { task: task.digest, assignment: first.assignment.digest };
      const found = planned && (await earlier?.find(row, overrides, planned));
      if (found !== undefined && found.kind !== "same") log?.(earlierText(options, found));
      for (const { assignment, rollouts } of assignments) {
        if (!(await book.has(assignment.digest))) {
          const put = sealer.add({ envelope: assignment, blobs: [...revisions, task, assignment] });
          put.catch(() => {}); // the next flush throws this error
          puts.push(put);
          revisions = [];
        }
        records.add(Task, task.digest, task.record);
        records.add(Assignment, assignment.digest, assignment.record);
        for (const rollout of rollouts) onRollout(rollout);
        chunk.push(...rollouts);
      }
      if (chunk.length >= CHUNK) await flush();
    }
    await flush();
  } finally {
    await Promise.allSettled(puts); // needed after a bad row: the caller closes the book
  }
}

function earlierText(
  { agent: { name, digest }, exp }: EnqueueOptions,
  earlier: Exclude<Earlier, { kind: "same" }>,
): string {
  const isAgent = earlier.kind === "other-agent";
  const other = isAgent
    ? `another agent or another version of ${name} (${agentName(earlier.agent)}; now ${agentName(digest)})`
    : "other options, such as --agent, --samples or --seed";
  const same = isAgent ? "name its agent, as it was" : "give the same options";
  return `experiment ${exp} ran these tasks before with ${other}: every rollout runs again, and the earlier ones stay in the book beside them. To go on with the earlier launch, ${same}. To keep the results apart, add --exp NAME. To run failures alone again, add --retry failed.`;
}
