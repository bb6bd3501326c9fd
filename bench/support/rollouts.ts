/** Rollouts of realistic shape in any number, from a seed:
 *  multi-turn token streams with masks, groups and, on request, calls. */
import { digestJson } from "../../src/base/digest.ts";
import { parseId } from "../../src/base/ids.ts";
import { type Rng, rngFrom } from "../../src/base/rng.ts";
import type { EnvironmentKey, RolloutDraft, Sealed, SealedRollout } from "../../src/contract/index.ts";
import { PolicyRevision, seal, sealRollout } from "../../src/contract/index.ts";

export const FAMILY = parseId("agent.decoder");
const REVISIONS = 4;

export function makeRevisions(): Sealed<PolicyRevision>[] {
  return Array.from({ length: REVISIONS + 1 }, (_, i) =>
    seal(PolicyRevision, {
      family: FAMILY,
      id: parseId(`r${i}`),
      number: BigInt(i),
      digest: weights(i),
      producedAtMs: 1000 + i,
    }),
  );
}

export interface RolloutShape {
  tokens: number;
  turns: number;
  groupSize: number;
  /** Model calls recorded with their messages; 0 records token streams only. */
  calls: number;
}

/** Mask 0 for tokens that the policy reads (a third), 1 for tokens that it samples; a reward ends every turn. */
export function makeDraftAt(index: number, shape: RolloutShape, seed = 1n): RolloutDraft {
  const rng = rngFrom(seed).split(index);
  const { tokens, turns } = shape;
  const mask = new Uint8Array(tokens);
  const turn = new Uint32Array(tokens);
  const perTurn = Math.ceil(tokens / turns);
  const segments: {
    start: number;
    end: number;
    revision: { id: PolicyRevision["id"]; digest: PolicyRevision["digest"] };
  }[] = [];
  const revision = { id: parseId(`r${index % REVISIONS}`), digest: weights(index % REVISIONS) };
  for (let t = 0; t < turns; t++) {
    const [from, to] = [t * perTurn, Math.min(tokens, (t + 1) * perTurn)];
    const reply = Math.min(to - 1, from + Math.floor(perTurn / 4) + rng.below(Math.ceil(perTurn / 8)));
    mask.fill(1, reply, to);
    turn.fill(t, Math.max(0, from - rng.below(Math.ceil(perTurn / 4))), to);
    segments.push({ start: reply, end: to, revision });
  }
  const rewards = new Float32Array(tokens);
  for (const { end } of segments) rewards[end - 1] = rng.below(1000) / 1000;
  return {
    rolloutId: parseId(`rollout-${index}`),
    environment: "env.bench@1" as EnvironmentKey,
    task: { id: parseId(`task-${Math.floor(index / shape.groupSize)}`) },
    group: parseId(`group-${Math.floor(index / shape.groupSize)}`),
    seed: BigInt(index),
    dataSource: "synthetic",
    sampling: { temperature: 1, top_p: 0.95 },
    calls: Array.from({ length: shape.calls }, (_, i) => makeCall(index, i, shape)),
    scores: [{ name: parseId("verified"), value: rewards[tokens - 1]!, weight: 1 }],
    ending: { kind: "terminal" },
    streams: [
      {
        level: "token",
        family: FAMILY,
        logprobKind: "sampling",
        segments,
        mask,
        turns: turn,
        rewards,
        ...draws(rng, tokens),
      },
    ],
    envelope: {
      worker: parseId(`worker-${index % 8}`),
      startedAtMs: 1_700_000_000_000 + index,
      endedAtMs: 1_700_000_060_000 + index,
    },
  };
}

export function makeRolloutAt(index: number, shape: RolloutShape, seed = 1n): SealedRollout {
  return sealRollout(makeDraftAt(index, shape, seed));
}

/** Token ids and logprobs from a fast generator: the numbers only have to be distinct and plausible. */
function draws(rng: Rng, tokens: number): { ids: Uint32Array; logprobs: Float32Array } {
  const ids = new Uint32Array(tokens);
  const logprobs = new Float32Array(tokens);
  let state = rng.u32() | 1;
  for (let i = 0; i < tokens; i++) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    // The low bits of this generator have a short period.
    ids[i] = (state >>> 8) % 50_000;
    logprobs[i] = -((state >>> 12) % 4096) / 1024;
  }
  return { ids, logprobs };
}

function makeCall(rollout: number, call: number, shape: RolloutShape): RolloutDraft["calls"][number] {
  const message = (turn: number) => ({
    role: turn % 2 ? "assistant" : "user",
    content: `rollout ${rollout}, message ${turn}: ${"some words ".repeat(20)}`,
  });
  return {
    dialect: "openai-chat",
    model: "bench-model",
    request: {
      messages: Array.from({ length: 2 * call + 1 }, (_, turn) => message(turn)),
      parameters: { temperature: 1 },
    },
    response: { messages: [message(2 * call + 1)], finishReason: "stop" },
    usage: { promptTokens: shape.tokens, completionTokens: 100 },
  };
}

function weights(number: number) {
  return digestJson("bench.weights", number);
}
