/** Launches an agent on every task, several times, and seals the rollouts in a book.
 *  In: tasks, a book, an agent. Out: results in completion order. Work begins at once. Repeating the same launch runs
 *  only the missing rollouts. A book or queue that the launch opened is closed when the launch ends, is abandoned or is
 *  cancelled. */
import { type Digest, given, parseId } from "../../base/index.ts";
import { type MetricsServer, serveMetrics } from "../../collect/index.ts";
import type { WorkQueue } from "../../collect/queue/index.ts";
import {
  AGENT_FAMILY,
  type EarlierRuns,
  type Launch,
  type LaunchOptions,
  LaunchTally,
  type Progress,
  type RolloutFuture,
  type RolloutResult,
  type RowForm,
  launch as startLaunch,
} from "../../collect/rollout/index.ts";
import { type FailureOwner, RolloutContent, RolloutEnvelope } from "../../contract/index.ts";
import { type OpenBook, revisionsIn } from "../open/index.ts";
import { requireExperiment } from "../rollouts/index.ts";
import { agentOf, hiddenFrom } from "./agent.ts";
import { experimentOutcomes, failedSamples, rerunsOf } from "./launch-outcomes.ts";
import { checkNewBook, openPlace, recorderAt } from "./place.ts";
import { checkQueue, openQueue, type WorkRequest, workerName, workerOptions } from "./queue.ts";
import { rowsOf, sourceOf, type Tasks } from "./tasks.ts";
import { launchPage } from "./work-metrics.ts";

export interface LaunchRequest
  extends WorkRequest,
    Partial<
      Pick<
        LaunchOptions,
        | "samples"
        | "seed"
        | "dataSource"
        | "modelId"
        | "baseUrl"
        | "extra"
        | "limits"
        | "deadlineMs"
        | "override"
        | "router"
        | "records"
        | "onAttempt"
      >
    > {
  /** Name of the experiment; a new name gives new rollouts (default: default). */
  readonly exp?: string | undefined;
  /** Environment of the tasks (default: local@1). */
  readonly environment?: string | undefined;
  /** Form of the rows (default: auto). */
  readonly rows?: RowForm | undefined;
  /** Runs only the failures of this experiment again; only those of `owner` if given. */
  readonly retry?: { readonly owner?: FailureOwner | undefined } | undefined;
}

export function launch(tasks: Tasks, request: LaunchRequest): Launch {
  return new BookLaunch(tasks, request);
}

class BookLaunch implements Launch {
  readonly #nothing: Progress;
  readonly #opened: Promise<{ launch: Launch; close(): Promise<void> }>;
  #launch: Launch | undefined;

  constructor(tasks: Tasks, request: LaunchRequest) {
    this.#nothing = new LaunchTally({ nowMs: () => 0 }).now();
    this.#opened = openLaunch(tasks, request);
    this.#opened.then(
      ({ launch }) => {
        this.#launch = launch;
      },
      () => {}, // the error reaches callers of futures() and the iteration
    );
    // A caller that only asks for futures does not close. A failure to close rejects `ended`.
    this.ended.catch(() => {});
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<RolloutResult, void, void> {
    const { launch, close } = await this.#opened;
    try {
      yield* launch;
    } finally {
      await close();
    }
  }

  async futures(): Promise<readonly RolloutFuture[]> {
    return (await this.#opened).launch.futures();
  }

  progress(): Progress {
    return this.#launch?.progress() ?? this.#nothing;
  }

  get ended(): Promise<void> {
    return this.#opened.then(({ launch, close }) => launch.ended.finally(close));
  }

  async cancel(): Promise<void> {
    const { launch, close } = await this.#opened;
    await launch.cancel();
    await close();
  }
}

async function openLaunch(
  tasks: Tasks,
  request: LaunchRequest,
): Promise<{ launch: Launch; close(): Promise<void> }> {
  const root = typeof request.book === "string" ? request.book : request.book.root;
  checkQueue(request, { root, create: true });
  const rows = rowsOf(tasks);
  const oracles = typeof tasks === "string" ? [tasks] : [];
  const agent = await agentOf(request.agent, { ...request, hidden: hiddenFrom(request, ...oracles) });
  const { book, clock, signer, trusts, admit, leave } = await openPlace(request, {
    create: true,
    beforeNew: (root) => checkNewBook(request.gateway, root),
  });
  let queue: WorkQueue;
  try {
    queue = await openQueue(request, { root: book.root, clock, create: true });
  } catch (error) {
    await leave();
    throw error;
  }
  let closed: Promise<void> | undefined;
  let metrics: MetricsServer | undefined;
  const close = () => {
    closed ??= (metrics?.close() ?? Promise.resolve()).then(() => queue.close()).finally(leave);
    return closed;
  };
  try {
    const settings = settingsOf(request);
    if (request.retry !== undefined) requireExperiment(await book.index(), settings.exp);
    const retries =
      request.retry === undefined
        ? undefined
        : failedSamples(await experimentOutcomes(book, settings.exp), request.retry.owner);
    let launch: Launch | undefined;
    // Served before the work begins: a port in use is then an error with nothing to undo.
    metrics = await serveMetrics(request.metrics, async () =>
      launch === undefined ? "" : launchPage(launch.progress(), await queue.counts()),
    );
    launch = startLaunch(rows, {
      ...settings,
      ...workerOptions(request),
      ...{ agent, book: book.store, queue, clock, signer, trusts, worker: workerName(request) },
      ...given({
        admit,
        retries,
        source: sourceOf(tasks),
        records: request.records,
        onAttempt: request.onAttempt,
      }),
      earlierRuns: await earlierRunsOf(book, settings.exp),
      rerun: rerunsOf(book, settings.exp),
      recorder: recorderAt(request.gateway, request),
    });
    return { launch, close };
  } catch (error) {
    await close();
    throw error;
  }
}

async function earlierRunsOf(book: OpenBook, experiment: string): Promise<EarlierRuns> {
  const index = await book.index();
  const revisions = revisionsIn(index).filter(({ family }) => family === AGENT_FAMILY);
  return {
    agents: [...new Set(revisions.map(({ fields }) => fields.digest as Digest))],
    hasRollouts(task) {
      const contents = index.digestsOf(RolloutContent.kind, index.rolloutsWith(task));
      const envelopes = index.about(
        contents.map(({ digest }) => digest),
        [RolloutEnvelope.kind],
      );
      return envelopes.some(({ fields }) => fields.experiment === experiment);
    },
  };
}

function settingsOf(request: LaunchRequest) {
  const { samples = 1, seed = 0n, exp = "default", environment = "local@1", dataSource = "real" } = request;
  const { modelId, baseUrl, extra, limits, deadlineMs, override, rows, router } = request;
  return {
    ...{ samples, seed, exp: parseId(exp, "--exp"), dataSource },
    environment: environment as LaunchOptions["environment"],
    // Both values are part of the rollout ids, so an absent value must equal an empty one.
    ...{ extra: extra ?? {}, limits: limits ?? {} },
    ...given({ form: rows, modelId, baseUrl, deadlineMs, override, router }),
  };
}
