/** Provides everything that token windows use to collect and learn: tasks, the agent, a gateway before the model
 *  server, the trainer. The gateway is opened for one window and knows one revision. All tokens it records come from
 *  these weights, because the server answers only for the requested revision. */
import { type Digest, digestBytes, digestJson, type Json, RollbookError } from "../../base/index.ts";
import { followLaunch, launch, openGateway } from "../../book/collect/index.ts";
import { KeptThread, startCatalogKeeper } from "../../collect/index.ts";
import type { Agent, Progress, RolloutResult } from "../../collect/rollout/index.ts";
import { loadAgent, RecentRecords } from "../../collect/rollout/index.ts";
import { WEIGHTS_KIND } from "../../contract/index.ts";
import type { RunContext } from "../stage-parts.ts";
import type { TokenWorldConfig } from "../token-config.ts";
import { type Assigned, assignedOf, readRows } from "../world/index.ts";
import { type DeskAgent, tokenChatAgent } from "./chat-agent.ts";
import { readWeights, tokenizerDigest } from "./checkpoints.ts";
import { ModelServer, type ServedRevision } from "./model-server.ts";
import { TorchProcess } from "./torch-process.ts";
import { checkReport, type TrainingReport } from "./training-report.ts";

interface TokenCollecting {
  readonly revision: ServedRevision;
  readonly rows: readonly Json[];
  readonly samples: number;
  readonly experiment: string;
  readonly seed: bigint;
  readonly gateway: string;
  readonly onProgress: (progress: Progress) => void;
}

export interface TokenWorld extends Omit<TokenInputs, "agent"> {
  readonly digest: Digest;
  readonly rows: number;
  assign(rows: readonly number[], samples: number): Assigned;
  /** Opened records of the last window. */
  readonly records: RecentRecords;
  collect(request: TokenCollecting): Promise<{ results: readonly RolloutResult[]; progress: Progress }>;
  train(request: object): Promise<TrainingReport>;
  /** Makes the server load a revision that will be served next. */
  prepare(revision: ServedRevision): void;
  close(): Promise<void>;
}

/** Number of times that a server may die within one window. */
const DEATHS = 3;
const MODEL = "policy";
/** Content, envelope, task and assignment. */
const RECORDS_OF_ROLLOUT = 4;
/** One process works on a window, and sealed rollouts are in the book. A queue on disk would be discarded after a kill
 *  anyway. */
const QUEUE = ":memory:";

/** Files that a run reads once, before it opens its book. */
export interface TokenInputs {
  readonly agent: DeskAgent;
  readonly tasks: readonly Json[];
  readonly heldOut: readonly Json[];
  /** Digest of the tokenizer's file. */
  readonly tokenizer: Digest;
  /** Bytes of the checkpoint that the run begins with. */
  readonly weights: Uint8Array;
}

/** `hidden`: paths, beside the tasks, that the agent must not see. */
export async function readTokenInputs(
  config: TokenWorldConfig,
  hidden: readonly string[],
): Promise<TokenInputs> {
  const { model, sampling, tasks, heldOut } = config;
  const oracles = [tasks, ...(heldOut === undefined ? [] : [heldOut.tasks])];
  return {
    agent:
      config.agent === undefined
        ? tokenChatAgent(sampling)
        : anywhere(await loadAgent(config.agent, { hidden: [...oracles, ...hidden] })),
    tasks: readRows(tasks),
    heldOut: heldOut === undefined ? [] : readRows(heldOut.tasks, "world.heldOut.tasks"),
    tokenizer: tokenizerDigest(model),
    weights: readWeights(model),
  };
}

export function openTokenWorld(config: TokenWorldConfig, inputs: TokenInputs, run: RunContext): TokenWorld {
  const { book, identity, signal, log, config: loop } = run;
  const { family, environment, python, device, threads } = config;
  const { agent, tasks, heldOut, tokenizer, weights } = inputs;
  const digests = tasks.map((row) => digestJson("rollbook.loop-row.v1", row));
  const place = { python, device, threads, log, options: loop.options };
  const server = new ModelServer(place, { maxBatch: config.maxBatch });
  const keeper = startCatalogKeeper(book.root, log);
  const keptThread = new KeptThread();
  const records = new RecentRecords(book.store, RECORDS_OF_ROLLOUT * loop.rollouts);
  let trainer: TorchProcess | undefined;
  return {
    digest: digestJson("rollbook.loop-token-world.v1", {
      ...{ agent: agent.digest, rows: digests, family, environment },
      model: digestBytes(WEIGHTS_KIND, weights),
      heldOut: heldOut.map((row) => digestJson("rollbook.loop-row.v1", row)),
    }),
    ...{ rows: tasks.length, tasks, heldOut, weights, tokenizer, records },
    assign: (chosen, samples) => assignedOf(chosen, samples, digests),
    async collect({ revision, rows, samples, experiment, seed, gateway: worker, onProgress }) {
      for (let deaths = 0; ; deaths++) {
        const serving = await server.serve(revision);
        const [before, beganMs] = [await server.decodeSeconds(), book.clock.nowMs()];
        const gateway = await openGateway({
          ...{ book, port: 0, log, identity: () => identity, keptThread },
          config: gatewayConfig({ worker, revision, family, environment, ...serving }),
        });
        try {
          const results: RolloutResult[] = [];
          const launched = launch([...rows] as object[], {
            ...{
              book,
              agent: agent.at(gateway.desk),
              environment,
              seed,
              exp: experiment,
              samples,
              log,
              queue: QUEUE,
              records,
            },
            ...{ concurrency: loop.workers, drain: signal, signal: serving.died, modelId: MODEL },
            ...{ gateway: { url: gateway.url, desk: gateway.desk }, identity: () => identity },
          });
          const progress = await followLaunch(launched, {
            onProgress,
            onResult: (each) => results.push(each),
          });
          if (!serving.died.aborted || results.length === progress.total) {
            const decoding = ((await server.decodeSeconds()) - before).toFixed(3);
            const seconds = ((book.clock.nowMs() - beganMs) / 1000).toFixed(3);
            log(`${experiment}: ${results.length} rollouts in ${seconds} s, ${decoding} s of them decoding`);
            return { results, progress };
          }
        } finally {
          await gateway.close();
          await keeper.caughtUp();
        }
        if (deaths + 1 >= DEATHS) throw diedTooOften(experiment, loop.options);
        log(`${experiment}: the model server died; it is started again for the rollouts that are left`);
      }
    },
    async train(request) {
      if (trainer === undefined || trainer.ended.aborted) {
        trainer = new TorchProcess("train", place);
        await trainer.read();
      }
      const reply = (await trainer.ask(request)) as {
        report?: unknown;
        error?: { code: string; message: string };
      };
      if (reply.error !== undefined)
        throw new RollbookError(
          reply.error.code,
          {},
          `the trainer: ${reply.error.message} The window stays as it is; continue with \`rollbook run resume ${loop.options}\`.`,
        );
      return checkReport(reply.report);
    },
    prepare(revision) {
      server.serve(revision).catch(() => {}); // the caller that needs it asks again and gets the error
    },
    async close() {
      await Promise.all([server.close(), trainer?.close(), keeper.close(), keptThread.close()]);
    },
  };
}

/** Agent that calls the URL it is given. */
function anywhere(agent: Agent): DeskAgent {
  return { digest: agent.digest, at: () => agent };
}

function gatewayConfig({
  url,
  tokenizer,
  revision,
  worker,
  family,
  environment,
}: {
  url: string;
  tokenizer: string;
  revision: ServedRevision;
  worker: string;
  family: string;
  environment: string;
}): object {
  const { id, digest } = revision;
  return {
    worker,
    rollouts: { environment },
    upstreams: { torch: { baseUrl: `${url}/v1`, connections: 1024 } },
    models: {
      [MODEL]: {
        ...{ upstream: "torch", model: id, family, revision: { id, digest }, tokenizer },
        ...{ logprobKind: "sampling", capture: { tokens: "vllm" } },
      },
    },
  };
}

function diedTooOften(experiment: string, options: string): RollbookError {
  return new RollbookError(
    "server-died",
    { experiment, deaths: DEATHS },
    `the model server died ${DEATHS} times in ${experiment}. Look at its last lines, lower world.maxBatch if memory ran out, and continue with \`rollbook run resume ${options}\`.`,
  );
}
