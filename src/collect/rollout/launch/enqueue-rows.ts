/** From rows to queued work. In: rows, and what makes them the rollouts of this launch. Out: tasks and assignments in
 *  the book, items in the queue, every planned rollout told. Tasks are durable before the queue names them. Runs none. */
import { given, type Id } from "../../../base/index.ts";
import type { Signer } from "../../../contract/index.ts";
import { type Book, makeSealer } from "../../../store/index.ts";
import type { WorkQueue } from "../../queue/index.ts";
import type { Agent } from "../agent/index.ts";
import { agentRevision } from "../record/index.ts";
import type { RowForm } from "../work/index.ts";
import {
  type FailedSample,
  type LaunchSettings,
  type Overrides,
  type PlannedRollout,
  planner,
} from "../worker/index.ts";

export interface EnqueueOptions extends Omit<LaunchSettings, "agent"> {
  readonly agent: Agent;
  readonly book: Pick<Book, "has" | "put" | "flush">;
  readonly queue: Pick<WorkQueue, "enqueue">;
  readonly signer: Signer;
  readonly form?: RowForm;
  /** What is different for one row: configuration, limits. */
  readonly override?: (row: unknown, index: number) => Overrides | undefined;
  /** The samples of a task that run again; no other runs. */
  readonly retries?: (task: Id) => readonly FailedSample[];
  readonly log?: (message: string) => void;
}

/** Rollouts enqueued in one commit, about. */
const CHUNK = 256;

export async function enqueueRows(
  rows: Iterable<unknown> | AsyncIterable<unknown>,
  options: EnqueueOptions,
  { signal, onRollout }: { signal: AbortSignal; onRollout: (rollout: PlannedRollout) => void },
): Promise<void> {
  const { book, queue, form, retries, override, log, agent, signer } = options;
  const plan = planner({ ...options, agent: agent.digest }, given({ form, retries }));
  const sealer = makeSealer(book, signer);
  let chunk: PlannedRollout[] = [];
  let puts: Promise<void>[] = [];
  const flush = async () => {
    await Promise.all(puts);
    await queue.enqueue(chunk.map(({ item }) => item));
    [chunk, puts] = [[], []];
  };
  let revisions = [agentRevision(agent)]; // goes in with the first row
  let index = 0;
  for await (const row of rows) {
    if (signal.aborted) break;
    const { task, assignments, warning } = plan(row, override?.(row, index++));
    if (warning !== undefined) log?.(warning);
    for (const { assignment, rollouts } of assignments) {
      if (!(await book.has(assignment.digest))) {
        puts.push(sealer.add({ envelope: assignment, blobs: [...revisions, task, assignment] }));
        revisions = [];
      }
      for (const rollout of rollouts) onRollout(rollout);
      chunk.push(...rollouts);
    }
    if (chunk.length >= CHUNK) await flush();
  }
  await flush();
}
