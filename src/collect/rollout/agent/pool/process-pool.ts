/** A reused pool of an agent's processes, and the agent that runs in it. In: a module's path, its confinement. Out: an
 *  Agent. A process serves one rollout at a time, so a rollout that spins or exits affects no other rollout. Rewards
 *  run in separate processes, so that processes of rollouts never see a label. */
import { existsSync } from "node:fs";
import { availableParallelism } from "node:os";
import { type Digest, given } from "../../../../base/index.ts";
import { moduleFile } from "../../../start-thread.ts";
import type { Agent } from "../agent.ts";
import { failedBy } from "../failure.ts";
import type { Score } from "../output.ts";
import type { RewardInput } from "../reward.ts";
import { AgentProcess, AgentThrew, type LoadedAgent, NotBegun } from "./agent-process.ts";
import { type Confinement, confined, environmentFor } from "./confine.ts";
import { badAgent } from "./import-agent.ts";
import { pack, type SentContext, type ToAgent } from "./wire.ts";

/** Idle time after which a process ends. */
const IDLE_MS = 30_000;
/** Time limit of a reward. A slower reward has failed. */
const SCORE_MS = 600_000;

export async function pooledAgent(
  path: string,
  { name, digest, ...confinement }: Confinement & { name: string; digest: Digest },
): Promise<Agent> {
  const command = () => commandFor(path, confinement);
  const runs = new ProcessPool(command);
  const { limits, scorer } = await runs.open().catch((cause: Error) => {
    throw badAgent(
      path,
      cause.message.startsWith(`${path} `) ? cause.message.slice(path.length + 1, -1) : cause.message,
      cause,
    );
  });
  const scores = new ProcessPool(command);
  return {
    name,
    digest,
    ...(limits === undefined ? {} : { limits }),
    ...(scorer === undefined
      ? {}
      : { scorer: { ...scorer, score: (input, signal) => scoreIn(scores, input, signal) } }),
    async run(payload, context) {
      const { rolloutId, sample, attempt, rolloutConfig, seed, baseUrl, apiKey, maxTurns } = context;
      const sent: SentContext = {
        ...{ rolloutId, sample, attempt, rolloutConfig, seed: String(seed) },
        ...given({ baseUrl, apiKey, maxTurns }),
      };
      try {
        return await runs.request((id) => ({ kind: "run", id, payload, context: sent }), context);
      } catch (error) {
        if (!(error instanceof AgentThrew)) throw error;
        // As with a program, an owner named by the agent is the agent's claim, not ours.
        if (error.named && error.ending.kind === "failed") return { ending: error.ending };
        throw error.asError();
      }
    },
  };
}

async function scoreIn(pool: ProcessPool, input: RewardInput, stop?: AbortSignal): Promise<Score[]> {
  const limit = AbortSignal.timeout(SCORE_MS);
  const signal = stop === undefined ? limit : AbortSignal.any([limit, stop]);
  try {
    const make = (id: number) => ({ kind: "score", id, input: pack(input) }) as const;
    return (await pool.request(make, { signal, log: () => {} })) as Score[];
  } catch (error) {
    // A failure of the reward belongs to the task. The executor attributes it so, unless the error names another owner.
    if (error instanceof AgentThrew && error.ending.kind === "failed")
      throw error.ending.owner === "agent"
        ? new Error(error.message)
        : failedBy(error.ending.owner, error.message);
    throw error;
  }
}

interface Command {
  readonly argv: readonly string[];
  readonly env: NodeJS.ProcessEnv;
  /** True if a path to hide does not exist yet. A process started now would see the path once it is created. */
  readonly isEarly: boolean;
}

/** A process that ends before it reads a request does not fail that request. After this many such ends, it does. */
const MAX_TRIES = 3;

function commandFor(path: string, confinement: Confinement): Command {
  const child = moduleFile(import.meta.url, "child");
  const argv = confined([process.execPath, child, path], {
    ...confinement,
    ...{ agent: path, needs: [child], channel: true },
  });
  const isEarly = (confinement.hidden ?? []).some((hidden) => !existsSync(hidden));
  return { argv, env: environmentFor(confinement), isEarly };
}

interface Waiting {
  resolve(process: AgentProcess): void;
  reject(error: unknown): void;
}

class ProcessPool {
  readonly #command: () => Command;
  readonly #idle: { readonly process: AgentProcess; readonly timer: NodeJS.Timeout }[] = [];
  readonly #waiting: Waiting[] = [];
  #starting = 0;

  constructor(command: () => Command) {
    this.#command = command;
  }

  /** Starts the first process, which describes the module. */
  async open(): Promise<LoadedAgent> {
    const { argv, env, isEarly } = this.#command();
    const process = new AgentProcess(argv, env);
    const loaded = await process.loaded;
    if (isEarly) process.kill("was started early");
    else this.#give(process);
    return loaded;
  }

  async request(
    make: (id: number) => ToAgent,
    { signal, log }: { readonly signal: AbortSignal; readonly log: (line: string) => void },
  ): Promise<unknown> {
    for (let tries = 1; ; tries++) {
      const process = await this.#take(signal);
      try {
        return await process.request(make, { signal, log });
      } catch (error) {
        if (!(error instanceof NotBegun)) throw error;
        if (tries === MAX_TRIES) throw failedBy("agent", error.message, { cause: error });
      } finally {
        this.#give(process);
      }
    }
  }

  #take(signal: AbortSignal): Promise<AgentProcess> {
    for (let idle = this.#idle.pop(); idle !== undefined; idle = this.#idle.pop()) {
      clearTimeout(idle.timer);
      if (idle.process.isAlive) return Promise.resolve(idle.process);
    }
    return new Promise((resolve, reject) => {
      const waiting = { resolve, reject };
      this.#waiting.push(waiting);
      signal.addEventListener("abort", () => this.#leave(waiting, signal.reason), { once: true });
      this.#startMore();
    });
  }

  #leave(waiting: Waiting, reason: unknown): void {
    const at = this.#waiting.indexOf(waiting);
    if (at < 0) return;
    this.#waiting.splice(at, 1);
    waiting.reject(reason);
  }

  /** Starts at most as many processes at a time as there are processors: more would only start more slowly. */
  #startMore(): void {
    while (this.#starting < Math.min(this.#waiting.length, availableParallelism())) {
      this.#starting++;
      const { argv, env } = this.#command();
      const process = new AgentProcess(argv, env);
      process.loaded
        .then(
          () => this.#give(process),
          (cause: Error) =>
            this.#waiting
              .shift()
              ?.reject(failedBy("agent", `the agent's process ${cause.message}`, { cause })),
        )
        .finally(() => {
          this.#starting--;
          this.#startMore();
        });
    }
  }

  #give(process: AgentProcess): void {
    if (!process.isAlive) {
      this.#startMore();
      return;
    }
    const next = this.#waiting.shift();
    if (next !== undefined) {
      next.resolve(process);
      return;
    }
    process.hold(false);
    const timer = setTimeout(() => process.kill("was idle"), IDLE_MS);
    timer.unref();
    this.#idle.push({ process, timer });
  }
}
