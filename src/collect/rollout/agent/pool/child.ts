/** The process of an agent: imports its module, then runs one rollout or one reward at a time.
 *  In: lines of JSON on descriptor 3. Out: lines of JSON on the same descriptor. agent-process.ts starts it with the
 *  module's path. An error, a rejection or a floating promise of the agent becomes an answer or ends this process. The
 *  launcher handles both. */
import { Socket } from "node:net";
import { frozenCopy, given, type Json, reasonOf, rngFrom } from "../../../../base/index.ts";
import type { Ending } from "../../../../contract/index.ts";
import { keyOf, type Payload, type RolloutContext, type RolloutDefinition } from "../agent.ts";
import { cutBy, endingOfError, failure, isNamedByThrower } from "../failure.ts";
import type { RewardInput } from "../reward.ts";
import { importAgent } from "./import-agent.ts";
import {
  CHANNEL_FD,
  type FromAgent,
  lineSplitter,
  MAX_MESSAGE_CHARS,
  pack,
  type SentContext,
  type ToAgent,
  unpack,
} from "./wire.ts";

const channel = new Socket({ fd: CHANNEL_FD, readable: true, writable: true });
const say = (message: FromAgent) => channel.write(`${JSON.stringify(message)}\n`);

interface Job {
  readonly id: number;
  readonly stop: AbortController;
}

let current: Job | undefined;

// The launcher has ended, so no more work will come.
channel.on("end", () => process.exit(0)).on("error", () => process.exit(0));

// After an unhandled rejection or an error in a callback, the current rollout has failed and this process ends.
for (const event of ["uncaughtException", "unhandledRejection"] as const)
  process.on(event, (error: unknown) => {
    if (current !== undefined) answerThrown(current, error, "outside of the rollout's own promise: ");
    channel.end(() => process.exit(1));
  });

void main(process.argv[2]!);

async function main(path: string): Promise<void> {
  const definition = await load(path);
  if (definition === undefined) return;
  const lines = lineSplitter((line) => receive(definition, JSON.parse(line) as ToAgent), {
    most: Number.POSITIVE_INFINITY,
  });
  channel.setEncoding("utf8").on("data", (chunk: unknown) => lines.push(chunk as string));
  const { limits, scorer } = definition;
  say({
    kind: "ready",
    ...(limits === undefined ? {} : { limits }),
    ...(scorer === undefined ? {} : { scorer: { name: scorer.name, digest: scorer.digest } }),
  });
}

async function load(path: string): Promise<RolloutDefinition | undefined> {
  try {
    return await importAgent(path);
  } catch (error) {
    say({ kind: "unfit", message: textOf(error) });
    channel.end(() => process.exit(1));
    return undefined;
  }
}

function receive({ run, scorer }: RolloutDefinition, message: ToAgent): void {
  switch (message.kind) {
    case "abort":
      if (current?.id === message.id)
        current.stop.abort(
          message.limit === undefined ? new Error(message.message) : cutBy(message.limit, message.message),
        );
      return;
    case "run":
      void answer(message.id, async (job) =>
        run(frozenCopy(message.payload) as Payload, contextOf(message.context, job)),
      );
      return;
    case "score":
      void answer(message.id, async () => scorer!.score(unpack(message.input) as RewardInput));
      return;
    default:
      message satisfies never;
  }
}

async function answer(id: number, work: (job: Job) => Promise<unknown>): Promise<void> {
  const job = { id, stop: new AbortController() };
  current = job;
  say({ kind: "began", id });
  try {
    const value = packed(await work(job));
    // A floating promise of the agent rejects before the next turn of the event loop. It still belongs to this rollout.
    await new Promise((resolve) => setImmediate(resolve));
    if (current === job) say({ kind: "returned", id, value });
  } catch (error) {
    if (current === job) answerThrown(job, error);
  }
  if (current === job) current = undefined;
}

function packed(value: unknown): Json {
  const json = pack(value);
  if (JSON.stringify(json).length > MAX_MESSAGE_CHARS / 4)
    throw new Error(`its result is larger than ${MAX_MESSAGE_CHARS / 4} characters.`);
  return json;
}

function answerThrown({ id }: Job, error: unknown, where = ""): void {
  let ending: Ending = endingOfError(error);
  if (where !== "" && ending.kind === "failed") ending = failure(ending.owner, `${where}${ending.message}`);
  say({ kind: "threw", id, ending, named: isNamedByThrower(error), last: where !== "" });
  current = undefined;
}

function textOf(error: unknown): string {
  try {
    return reasonOf(error);
  } catch {
    return "it threw a value that cannot be read";
  }
}

function contextOf(
  { seed, maxTurns, baseUrl, apiKey: sent, ...rest }: SentContext,
  { stop }: Job,
): RolloutContext {
  const apiKey = keyOf(given({ baseUrl, apiKey: sent }));
  let turns = 0;
  return Object.freeze({
    ...rest,
    rolloutConfig: frozenCopy(rest.rolloutConfig as Json) as SentContext["rolloutConfig"],
    seed: BigInt(seed),
    rng: rngFrom(BigInt(seed)),
    signal: stop.signal,
    ...given({ maxTurns, baseUrl, apiKey }),
    nextTurn() {
      if (maxTurns !== undefined && turns >= maxTurns) throw cutBy("turns");
      return ++turns;
    },
    log: (message: string) => void say({ kind: "log", message: String(message) }),
  });
}
