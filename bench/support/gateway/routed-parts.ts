/** A program: the cost of routing for one call without sockets and disk. It chooses the target, renames the model, and
 *  makes the entry of the journal, by name and routed in turns. In: a checkpoint or "table", and "one" or "many"
 *  prompts. Out: JSON on stdout. Each call is timed alone after a pass over memory, which makes the caches as cold as
 *  in a real call. The figure is the first quartile: calls that another process interrupts are among the slow ones. */
import { KeyPrefix, systemClock } from "../../../src/base/index.ts";
import { CallTarget } from "../../../src/collect/gateway/call/call-target.ts";
import type { CallContext, IncomingCall } from "../../../src/collect/gateway/call/index.ts";
import { parseGatewayConfig } from "../../../src/collect/gateway/config.ts";
import { dialectNamed } from "../../../src/collect/gateway/dialects/index.ts";
import { FrameReferences } from "../../../src/collect/gateway/journal/frame-references.ts";
import { encodeCall } from "../../../src/collect/gateway/journal/journal-call.ts";
import { Routes } from "../../../src/collect/gateway/upstream/index.ts";
import { checkRouterConfig, openRouter } from "../../../src/serve/index.ts";
import { chatBody, PROMPT } from "./chat-request.ts";

const [policy = "table", prompts = "one", callsText = "20000"] = process.argv.slice(2);
const CALLS = Number(callsText);
const ROLLOUTS = 500;
const [NAMED, ROUTED] = ["cheap", "auto"] as const;
/** Memory read between two calls, to clear the caches. */
const memory = new Float64Array((256 * 1024) / 8);
const dialect = dialectNamed("openai-chat");
const settings = policy === "table" ? { exploration: 0.02 } : { checkpoint: policy, allowUngated: true };
const candidates = ["cheap", "strong"].map((id) => ({ id, selectable: true, reasons: [], features: {} }));
const router = await openRouter(checkRouterConfig(settings), { clock: systemClock, candidates });
const config = parseGatewayConfig(
  `upstreams: { up: { baseUrl: "http://127.0.0.1:1" } }
models: { cheap: { upstream: up }, strong: { upstream: up } }
routes: { auto: [cheap, strong] }
router: { strategy: table }`,
);
const routes = new Routes(config, router.choose);
const deps = {
  routes,
  isResting: () => false,
} as unknown as CallContext;
const bodies = { [NAMED]: bodiesOf(NAMED), [ROUTED]: bodiesOf(ROUTED) };
const reply = [Buffer.alloc(1100, "a")];
const journal = Buffer.alloc(64 * 1024);
const frames = new FrameReferences();
const times = { [NAMED]: [] as number[], [ROUTED]: [] as number[] };

for (let i = 0; i < CALLS; i++)
  for (const model of i % 2 === 0 ? [NAMED, ROUTED] : [ROUTED, NAMED]) {
    const us = timeCall(model, i);
    // The first third is a warm-up.
    if (i > CALLS / 3) times[model].push(us);
  }
process.stdout.write(JSON.stringify({ named: quarter(times[NAMED]), routed: quarter(times[ROUTED]) }));

function bodiesOf(model: string): Buffer[] {
  const words = (i: number) => (prompts === "one" ? PROMPT : `Question ${i}. ${PROMPT}`);
  return Array.from({ length: ROLLOUTS }, (_, i) => Buffer.from(chatBody(false, model, words(i))));
}

function timeCall(model: typeof NAMED | typeof ROUTED, i: number): number {
  const body = Buffer.from(bodies[model][i % ROLLOUTS]!);
  const text = body.toString();
  const request = dialect.readRequest(JSON.parse(text))!;
  const call = Math.floor(i / ROLLOUTS);
  const id = `r-${String(i % ROLLOUTS).padStart(34, "0")}`;
  const rollout = { id, opening: {}, callKeys: new KeyPrefix(`${id}.`) };
  const idBytes = Buffer.from(rollout.id);
  for (let at = 0; at < memory.length; at += 8) memory[at]! += 1;
  const startMs = performance.now();
  const aimed = new CallTarget(
    { dialect, body, rollout } as unknown as IncomingCall,
    { call, vectors: undefined },
    deps,
  );
  aimed.choose(request, text);
  const { target, sent, decided } = aimed;
  const entry = encodeCall(
    {
      ...{ index: call, earlier: call, dialect: dialect.name, status: 200, outcome: "answered" },
      ...{ decided, startedAtMs: 1, firstByteMs: 2, durationMs: 3, costUsd: undefined },
      ...{ usage: { promptTokens: 120, completionTokens: 200 }, deliveries: [] },
      ...{ isRenamed: sent !== undefined, sentDigest: undefined },
    },
    { rollout: idBytes, target: target.factsBytes },
    { requestForm: "body", request: body, replyForm: "json", reply, media: [] },
    frames.begin(0),
  );
  frames.end({ segment: 0, offset: 0, bytes: 0 });
  let end = 0;
  for (const part of entry) {
    if (typeof part === "string") end += journal.write(part, end);
    else {
      journal.set(part, end);
      end += part.length;
    }
  }
  return (performance.now() - startMs) * 1000;
}

function quarter(values: number[]): number {
  return values.sort((a, b) => a - b)[values.length >> 2]!;
}
