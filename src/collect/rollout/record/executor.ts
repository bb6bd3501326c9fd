/** Runs one rollout to its typed ending. In: a job, an agent, a recorder. Out: an execution, to be sealed or abandoned.
 *  The caller decides if a failure is sealed or retried. Never throws for an agent's behaviour: that is data.
 *  Does not claim, retry or count. */
import {
  type Clock,
  type Digest,
  frozenCopy,
  given,
  type Id,
  isRollbookError,
  reasonOf,
  rngFrom,
} from "../../../base/index.ts";
import type { Ending, Task } from "../../../contract/index.ts";
import {
  type Agent,
  type ConfigParts,
  cutBy,
  endingOfError,
  failure,
  isNamedByThrower,
  mergeConfig,
  namedEnding,
  type ReadOutput,
  type RolloutContext,
  type RolloutLimits,
  type RolloutUsage,
  readOutput,
  type Score,
  samplingOf,
  totalOf,
} from "../agent/index.ts";
import type { Recorded, Recorder, Recording, RolloutClosing } from "./recorder.ts";

export interface RolloutJob {
  readonly rolloutId: Id;
  readonly task: Task;
  readonly taskDigest: Digest;
  readonly assignment: { readonly digest: Digest; readonly sample: number };
  readonly group?: Id;
  readonly seed: bigint;
  readonly attempt: number;
  readonly claim?: Id;
  readonly experiment?: Id;
  readonly router?: Digest;
  readonly token?: number;
  readonly config: ConfigParts;
  readonly limits: RolloutLimits;
}

interface ExecutorOptions {
  readonly agent: Agent;
  readonly recorder: Recorder;
  readonly clock: Clock;
  readonly worker: Id;
  /** Cancels the rollout. */
  readonly signal?: AbortSignal;
  readonly log?: (message: string) => void;
  /** Time for an agent to stop after its signal. After this time we no longer wait for the agent. */
  readonly graceMs?: number;
}

export interface Execution {
  readonly ending: Ending;
  readonly scores: readonly Score[];
  readonly usage: RolloutUsage;
  readonly durationMs: number;
  seal(): Promise<Recorded>;
  abandon(): Promise<void>;
}

const GRACE_MS = 2_000;
const NOTHING: ReadOutput = { scores: [], metrics: {}, ending: { kind: "terminal" }, streams: [], calls: [] };

export async function executeRollout(job: RolloutJob, options: ExecutorOptions): Promise<Execution> {
  const { agent, recorder, clock, worker } = options;
  const limits = { ...agent.limits, ...job.limits };
  const startedAtMs = clock.nowMs();
  const { environment, dataSource, id } = job.task;
  const sampling = samplingOf(job.config);
  const recording = await recorder.open({
    ...{ rolloutId: job.rolloutId, environment, dataSource, sampling, worker, startedAtMs, agent },
    task: { id, digest: job.taskDigest },
    assignment: job.assignment,
    seed: job.seed,
    attempt: job.attempt,
    ...given({
      group: job.group,
      claim: job.claim,
      experiment: job.experiment,
      router: job.router,
      token: job.token,
      maxTurns: limits.maxTurns,
      budgetUsd: limits.budgetUsd,
      signal: options.signal,
    }),
  });
  const ran = await withRefusal(await runAgent({ job, options, recording, limits }), recording);
  const durationMs = Math.max(0, clock.nowMs() - startedAtMs);
  const usage = await recording.usage();
  const { ending, scores } = await unlessCancelled(
    scoreRun({ job, agent, ran, usage, durationMs, signal: options.signal }),
    options.signal,
  );
  const { streams, calls, finalState } = ran;
  const closing = { ending, scores, streams, calls, endedAtMs: startedAtMs + durationMs };
  return {
    ...{ ending, scores, usage, durationMs },
    seal: () => sealRun(recording, { ...closing, ...(finalState === undefined ? {} : { finalState }) }),
    abandon: () => recording.abandon(ending),
  };
}

interface AgentRun {
  readonly job: RolloutJob;
  readonly options: ExecutorOptions;
  readonly recording: Recording;
  readonly limits: RolloutLimits;
}

async function runAgent({ job, options, recording, limits }: AgentRun): Promise<ReadOutput> {
  const stop = new AbortController();
  const cancel = () => stop.abort(new Error("the rollout was cancelled"));
  let timedOut = false;
  const timer =
    limits.timeMs === undefined
      ? undefined
      : setTimeout(() => {
          timedOut = true;
          stop.abort(cutBy("time"));
        }, limits.timeMs);
  options.signal?.addEventListener("abort", cancel, { once: true });
  if (options.signal?.aborted) cancel();
  try {
    const context = contextOf({ job, options, recording, limits }, stop.signal);
    const output = await settle(options, frozenCopy(job.task.payload as never), context);
    if (options.signal?.aborted) return { ...output, ending: { kind: "cancelled" } };
    return timedOut ? { ...output, ending: { kind: "truncated", limit: "time" } } : output;
  } finally {
    clearTimeout(timer);
    options.signal?.removeEventListener("abort", cancel);
  }
}

/** An agent that ignores the status of a reply fails later, on the reply's content. The refusal explains more. */
async function withRefusal(ran: ReadOutput, recording: Recording): Promise<ReadOutput> {
  const { ending } = ran;
  if (ending.kind !== "failed") return ran;
  const refusal = await recording.lastRefusal?.();
  if (refusal === undefined || ending.message.includes(refusal)) return ran;
  // The refusal comes first, because summaries show the first line.
  const message = `the gateway refused its last call: ${refusal} Then it failed: ${ending.message}`;
  return { ...ran, ending: { ...ending, ...failure(ending.owner, message) } };
}

/** Returns the agent's output or its failure. An agent that does not stop after the signal fails after `graceMs`. */
async function settle(
  { agent, graceMs = GRACE_MS }: ExecutorOptions,
  payload: RolloutJob["task"]["payload"],
  context: RolloutContext,
): Promise<ReadOutput> {
  const { signal } = context;
  const running = (async () => readOutput(await agent.run(payload as never, context)))().then(
    (output) => takenAtItsWord(output, agent),
    (error: unknown) => {
      const output = { ...NOTHING, ending: endingOfError(error) };
      return agent.inProcess && isNamedByThrower(error) ? takenAtItsWord(output, agent) : output;
    },
  );
  let timer: NodeJS.Timeout | undefined;
  let wait = () => {};
  const cutOff = new Promise<ReadOutput>((resolve) => {
    wait = () => {
      const ending = failure("agent", "the agent did not stop when told");
      timer = setTimeout(() => resolve({ ...NOTHING, ending }), graceMs);
    };
  });
  if (signal.aborted) wait();
  else signal.addEventListener("abort", wait, { once: true });
  try {
    return await Promise.race([running, cutOff]);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", wait);
  }
}

/** Handles an ending that blames another owner. Otherwise an agent could avoid all cost by calling its task broken. */
function takenAtItsWord(output: ReadOutput, { blame = "marked" }: Agent): ReadOutput {
  const { ending } = output;
  // Only a signal can cancel a rollout.
  if (ending.kind === "cancelled")
    return { ...output, ending: failure("agent", "the agent says that it was cancelled, but it was not") };
  if (ending.kind !== "failed" || ending.owner === "agent" || blame === "trusted") return output;
  if (blame === "marked") return { ...output, ending: { ...ending, declaredBy: "agent" } };
  return { ...output, ending: failure("agent", `the agent blames the ${ending.owner}: ${ending.message}`) };
}

function contextOf({ job, options, recording, limits }: AgentRun, signal: AbortSignal): RolloutContext {
  const { apiKey } = recording;
  const { maxTurns } = limits;
  const endpoint = {
    ...job.config.endpoint,
    ...given({ base_url: recording.baseUrl, api_key: apiKey }),
  };
  const rolloutConfig = mergeConfig({ ...job.config, endpoint });
  // Without a gateway the agent calls the model server that the launch names.
  const baseUrl = recording.baseUrl ?? rolloutConfig.base_url;
  let turns = 0;
  return Object.freeze({
    rolloutId: job.rolloutId,
    sample: job.assignment.sample,
    attempt: job.attempt,
    seed: job.seed,
    rng: rngFrom(job.seed),
    signal,
    rolloutConfig,
    ...given({ baseUrl, apiKey, maxTurns }),
    nextTurn() {
      if (maxTurns !== undefined && turns >= maxTurns) throw cutBy("turns");
      return ++turns;
    },
    log: (message: string) => options.log?.(`${job.rolloutId}: ${message}`),
  });
}

/** If there is a scorer, its terms count, and the agent's own scores are kept with weight 0. */
async function scoreRun(run: {
  job: RolloutJob;
  agent: Agent;
  ran: ReadOutput;
  usage: RolloutUsage;
  durationMs: number;
  signal: AbortSignal | undefined;
}): Promise<{ ending: Ending; scores: Score[] }> {
  const { job, agent, ran, usage, durationMs } = run;
  if (agent.scorer === undefined || ran.ending.kind === "cancelled")
    return { ending: ran.ending, scores: [...ran.scores] };
  const { payload, prompt, label } = job.task;
  try {
    const input = {
      task: { payload, prompt, label },
      ending: ran.ending,
      claimed: totalOf(ran.scores),
      metrics: ran.metrics,
      ...(ran.finalState === undefined ? {} : { finalState: ran.finalState }),
      ...{ usage, durationMs, attempt: job.attempt },
    };
    const own = await agent.scorer.score(input, run.signal);
    const names = new Set<string>(own.map(({ name }) => name));
    const claims = ran.scores
      .filter(({ name }) => !names.has(name))
      .map((score) => ({ ...score, weight: 0 }));
    return { ending: ran.ending, scores: [...own, ...claims] };
  } catch (error) {
    // A reward that cannot be computed is a failure of the task, not of the agent that ran it. If the error names
    // another owner, such as the sandbox, the rollout is retried.
    const named = namedEnding(error);
    const isOther = named?.kind === "failed" && named.owner !== "agent";
    const why = `the reward ${agent.scorer.name} failed: ${reasonOf(error)}`;
    return { ending: isOther ? named : failure("task", why), scores: [] };
  }
}

/** A slow reward does not prevent a launch from ending. */
async function unlessCancelled<T>(
  scored: Promise<{ ending: Ending; scores: T[] }>,
  signal: AbortSignal | undefined,
): Promise<{ ending: Ending; scores: T[] }> {
  if (signal === undefined) return scored;
  let cancel = () => {};
  const cancelled = new Promise<{ ending: Ending; scores: T[] }>((resolve) => {
    cancel = () => resolve({ ending: { kind: "cancelled" }, scores: [] });
  });
  if (signal.aborted) cancel();
  else signal.addEventListener("abort", cancel, { once: true });
  try {
    return await Promise.race([scored, cancelled]);
  } finally {
    signal.removeEventListener("abort", cancel);
  }
}

/** A report that no artifact can hold (a bad stream, a foreign ending) is sealed as the agent's failure. */
async function sealRun(recording: Recording, closing: RolloutClosing): Promise<Recorded> {
  try {
    return await recording.close(closing);
  } catch (error) {
    if (!isRollbookError(error) || error.code === "session-failed") throw error;
    const ending = failure("agent", `the agent's report cannot be sealed: ${error.message}`);
    return recording.close({ ending, scores: [], streams: [], calls: [], endedAtMs: closing.endedAtMs });
  }
}
