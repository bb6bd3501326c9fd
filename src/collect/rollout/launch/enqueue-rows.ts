/** Queues rows as work. In: rows, and the settings of this launch. Out: tasks and assignments in the book, items in the
 *  queue, a callback for each planned rollout. Tasks are durable before the queue names them. Runs no rollouts. */
import { type Digest, given, type Id } from "../../../base/index.ts";
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
import { ChangedAgent } from "./changed-agent.ts";

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
  /** Digests of agents that have run in this book, to detect a launch that ran with another version of its agent. */
  readonly agentsBefore?: readonly Digest[];
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
  // A retry of failures implies that the agent was changed on purpose.
  const versions = retries === undefined ? (options.agentsBefore ?? []) : [];
  const changed = new ChangedAgent(
    { ...options, agent: agent.digest },
    { book, versions, ...given({ form }) },
  );
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
      const before = await changed.find(row, overrides);
      if (before !== undefined) log?.(changedText(options, before));
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

function changedText({ agent: { name, digest }, exp }: EnqueueOptions, before: Digest): string {
  return `experiment ${exp} ran these tasks before with another agent or another version of ${name} (${agentName(before)}; now ${agentName(digest)}): every rollout runs again, and the earlier ones stay in the book beside them. To go on with the earlier launch, name its agent, as it was. To keep the results apart, add --exp NAME. To run failures alone again, add --retry failed.`;
}
