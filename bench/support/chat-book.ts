/** A book of rollouts as a chat agent leaves them, in any number: two calls each, a task, an experiment, a score.
 *  In: a store, the number of rollouts. Out: sealed rollouts in the store. The same number gives the same bytes. */
import { digestJson, parseId, rngFrom } from "../../src/base/index.ts";
import { type EnvironmentKey, type RolloutDraft, seal, sealRollout, Task } from "../../src/contract/index.ts";
import type { BlobStore } from "../../src/store/index.ts";

const MODELS = ["small-1", "large-1", "large-2"];
const REVISION = { id: parseId("agent"), digest: digestJson("bench.chat-book.v1", "agent") };
const START_MS = Date.UTC(2026, 0, 1);

export async function fillChatBook(store: BlobStore, rollouts: number): Promise<void> {
  for (let i = 0; i < rollouts; i++) {
    const task = seal(Task, {
      id: parseId(`t-${Math.floor(i / 8)}`),
      environment: "shop@1" as EnvironmentKey,
      payload: {},
      prompt: `Order ${Math.floor(i / 8)}: when does it arrive?`,
      dataSource: "synthetic",
    });
    if (i % 8 === 0) store.put(task.kind, task.bytes);
    for (const blob of sealRollout(chatDraft(i, { id: task.record.id, digest: task.digest })).blobs)
      store.put(blob.kind, blob.bytes);
    if (i % 1000 === 0) await store.flush();
  }
  await store.flush();
}

function chatDraft(i: number, task: RolloutDraft["task"]): RolloutDraft {
  const rng = rngFrom(1n).split(i);
  const model = MODELS[rng.below(MODELS.length)]!;
  const startedAtMs = START_MS + i * 1000;
  const user = { role: "user", content: `Order ${i}: when does it arrive?` };
  const asks = { id: `c-${i}`, type: "function", function: { name: "track", arguments: `{"order":${i}}` } };
  const first = { role: "assistant", content: null, tool_calls: [asks] };
  const result = { role: "tool", tool_call_id: `c-${i}`, content: `{"days":${rng.below(9)}}` };
  const answer = { role: "assistant", content: `In ${rng.below(9)} days.` };
  const call = (messages: object[], reply: object) => ({
    dialect: "openai-chat" as const,
    model,
    request: { messages, parameters: { temperature: 1 } },
    response: { messages: [reply], finishReason: "stop", status: 200 },
    usage: { promptTokens: 40 * messages.length, completionTokens: 12 },
    costUsd: 0.0001,
  });
  const candidates = MODELS.map((id) => ({
    id,
    selectable: true,
    reasons: [],
    probability: 1 / MODELS.length,
  }));
  const step = (n: number) => ({
    ...{ revision: REVISION, call: n, turn: n, candidates, chosen: MODELS.indexOf(model), reward: null },
  });
  const failed = rng.below(20) === 0;
  return {
    rolloutId: parseId(`r-${String(i).padStart(6, "0")}`),
    environment: "shop@1" as EnvironmentKey,
    task,
    group: parseId(`g-${Math.floor(i / 8)}`),
    seed: BigInt(i),
    dataSource: "synthetic",
    sampling: {},
    calls: [call([user], first), call([user, first, result], answer)] as unknown as RolloutDraft["calls"],
    streams: [{ level: "step", family: parseId("router"), steps: [step(0), step(1)] }],
    scores: failed ? [] : [{ name: parseId("solved"), value: rng.below(2), weight: 1 }],
    ending: failed
      ? { kind: "failed", owner: "provider", message: "503 from upstream" }
      : { kind: "terminal" },
    envelope: {
      worker: parseId("bench"),
      experiment: parseId(i % 2 === 0 ? "baseline" : "candidate"),
      ...{ startedAtMs, endedAtMs: startedAtMs + 500 + rng.below(2000) },
      callTimes: [0, 300].map((at) => ({
        startedAtMs: startedAtMs + at,
        firstByteMs: 40,
        durationMs: 200,
        delivery: "sent",
      })),
    },
  };
}
