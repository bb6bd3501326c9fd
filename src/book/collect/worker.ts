/** Joins a launch from another process, with the same queue, book and agent.
 *  In: a book, an agent. Out: number of rollouts begun, and receipts by outcome. Ends when the queue is empty, when
 *  this agent had no work for a while, or when stopped. */
import { plural } from "../../base/index.ts";
import { type MetricsServer, serveMetrics } from "../../collect/index.ts";
import type { WorkQueue } from "../../collect/queue/index.ts";
import {
  type Agent,
  agentName,
  makeWorkerServer,
  openSealedIndex,
  startWorker as startWork,
} from "../../collect/rollout/index.ts";
import { agentOf, hiddenFrom } from "./agent.ts";
import { openPlace, type RecordingPlace, recorderAt } from "./place.ts";
import { checkQueue, openQueue, type WorkRequest, workerName, workerOptions } from "./queue.ts";
import { WorkerMetrics } from "./work-metrics.ts";

interface WorkerRequest extends WorkRequest {
  /** Time without work before the worker ends (default: 60 s); "never" keeps it waiting. */
  readonly idleMs?: number | "never" | undefined;
}

export interface WorkDone {
  /** Number of rollouts that this worker began. */
  readonly begun: number;
  /** Number of receipts by outcome. */
  readonly receipts: Readonly<Record<string, number>>;
}

interface RunningWorker {
  /** Rejects if the worker could not continue. */
  readonly ended: Promise<WorkDone>;
  /** Cancels running rollouts and returns them to the queue. */
  stop(): Promise<WorkDone>;
}

export function startWorker(request: WorkerRequest): RunningWorker {
  const stop = new AbortController();
  const { signal } = request;
  const ended = work(request, signal === undefined ? stop.signal : AbortSignal.any([signal, stop.signal]));
  return {
    ended,
    stop() {
      stop.abort();
      return ended;
    },
  };
}

async function work(request: WorkerRequest, signal: AbortSignal): Promise<WorkDone> {
  const root = typeof request.book === "string" ? request.book : request.book.root;
  checkQueue(request, { root, create: false });
  const agent = await agentOf(request.agent, { ...request, hidden: hiddenFrom(request) });
  const place = await openPlace(request, { create: false });
  try {
    return await workAt(place, request, { agent, signal });
  } finally {
    await place.leave();
  }
}

async function workAt(
  { book: { store: book, root }, clock, signer, trusts, admit }: RecordingPlace,
  request: WorkerRequest,
  { agent, signal }: { agent: Agent; signal: AbortSignal },
): Promise<WorkDone> {
  const queue = await openQueue(request, { root, clock, create: false });
  const sealed = await openSealedIndex(root);
  const name = workerName(request);
  const { idleMs = 60_000 } = request;
  const receipts: Record<string, number> = {};
  let begun = 0;
  const metrics = new WorkerMetrics();
  let server: MetricsServer | undefined;
  try {
    server = await serveMetrics(request.metrics, () => metrics.page());
    const run = metrics.watch((payload, context) => {
      begun++;
      return agent.run(payload, context);
    });
    const worker = startWork({
      ...workerOptions(request),
      server: makeWorkerServer({ queue, book, clock, signer, trusts, newSession: () => name, admit }),
      ...{ signer, queue, book, sealed, clock, name, signal, agent: { ...agent, run } },
      recorder: recorderAt(request.gateway, request),
      onReceipt: ({ record: { outcome } }) => {
        receipts[outcome] = (receipts[outcome] ?? 0) + 1;
        metrics.receipt(outcome);
      },
      ...(idleMs === "never" ? {} : { idleMs }),
    });
    await worker.ended;
    if (begun === 0 && !signal.aborted) await tellForeignWork(queue, agent, request.log);
  } finally {
    await server?.close();
    await sealed.close();
    await queue.close();
  }
  return { begun, receipts };
}

/** Warns if a worker found no work while the queue has rollouts for other agents. Most likely its agent file is another
 *  version. */
async function tellForeignWork(
  queue: Pick<WorkQueue, "counts">,
  { name, digest }: Agent,
  log: WorkRequest["log"],
): Promise<void> {
  const { waiting } = await queue.counts();
  if (waiting > 0)
    log?.(
      `${plural(waiting, "rollout")} in the queue ${waiting === 1 ? "is" : "are"} for an agent other than ${name} (${agentName(digest)}): a worker runs only the agent file that was launched. Copy that file here, or launch again with this one.`,
    );
}
