/** Rollouts as episodes of verifiers v1, one JSON object per line of `traces.jsonl`, each with one trace.
 *  Root-to-leaf concatenation of a trace's nodes is the exact token sequence, and a node has one log-probability for
 *  each sampled token. A failure has errors and no reward. */
import { given } from "../../base/index.ts";
import type { Ending } from "../../contract/index.ts";
import {
  groupOf,
  type HandedRollout,
  promptOf,
  type RolloutPart,
  type TrainerFormat,
} from "../handover/index.ts";
import {
  EXTRAS_KEY,
  TRACED_PARTS,
  type TraceExtras,
  traceExtras,
  traceTools,
  wholeFor,
} from "../traces/index.ts";
import { readTrace } from "./read-verifiers.ts";
import { MessageGraph } from "./verifiers-graph.ts";
import {
  TRACE_VERSION,
  UNNAMED_REWARD,
  type VerifiersCall,
  type VerifiersEpisode,
  type VerifiersError,
  type VerifiersTask,
  type VerifiersTrace,
} from "./verifiers-records.ts";

/** The release of verifiers that defines these records. */
const VERIFIERS_RELEASE = "0.4.0";

const CARRIED: readonly RolloutPart[] = [...TRACED_PARTS, "tokens.advantages"];

export const verifiersTraces: TrainerFormat<VerifiersEpisode> = {
  from: "rollouts",
  together: "group",
  carried: CARRIED,
  async *rows(rollouts, { batch, losses }) {
    for await (const rollout of rollouts) {
      losses.addParts(rollout, CARRIED);
      const extras = await traceExtras(rollout, batch);
      const episode = episodeOf(rollout, extras);
      const read = { where: rollout.record.rolloutId, options: { dataSource: "real" }, episode } as const;
      const whole = await wholeFor(rollout, readTrace(episode.traces[0]!, read), losses);
      yield whole === undefined ? episode : episodeOf(rollout, { ...extras, whole });
    }
  },
};

function episodeOf(rollout: HandedRollout, extras: TraceExtras): VerifiersEpisode {
  const { record } = rollout;
  const task = taskOf(rollout);
  const errors = errorsOf(record.ending);
  return {
    id: record.rolloutId,
    env: { id: record.environment },
    task,
    group: record.group === undefined ? null : { id: groupOf(rollout) },
    ok: errors.length === 0,
    errors,
    traces: [traceOf(rollout, { extras, task, errors })],
  };
}

function traceOf(
  rollout: HandedRollout,
  { extras, task, errors }: { extras: TraceExtras; task: VerifiersTask; errors: readonly VerifiersError[] },
): VerifiersTrace {
  const { record, calls, tokens, times } = rollout;
  const graph = new MessageGraph(calls);
  if (tokens !== null) graph.placeTokens(tokens);
  const start = (times?.startedAtMs ?? 0) / 1000;
  return {
    ...{ version: TRACE_VERSION, id: record.rolloutId, verifiers: { version: VERIFIERS_RELEASE }, task },
    agent: { config: { model: calls.at(-1)?.record.model ?? null }, name: "agent", trainable: true },
    tools: traceTools(calls.at(-1)?.tools),
    nodes: graph.nodes({ timestamp: start, advantage: tokens?.advantage ?? null }),
    calls: calls.map((call, i) => callOf(call, graph.replies[i]!)),
    rewards: rewardsOf(rollout),
    info: { [EXTRAS_KEY]: extras },
    ...{ is_completed: true, ok: errors.length === 0, ...stopOf(record.ending), errors },
    timing: { start, agent: { start, end: (times?.endedAtMs ?? 0) / 1000 } },
  };
}

function taskOf(rollout: HandedRollout): VerifiersTask {
  const { id, digest, label, payload } = rollout.task;
  const prompt = promptOf(rollout);
  const text = typeof prompt === "string" ? prompt : prompt?.map(({ content }) => content ?? "").join("\n");
  return {
    type: "RollbookTask",
    data: {
      id,
      ...given({ prompt: text, label, payload }),
    },
    key: digest ?? id,
  };
}

function callOf({ record }: HandedRollout["calls"][number], node: number | null): VerifiersCall {
  const { model, usage, costUsd, response } = record;
  return {
    ...{ node, model, finish_reason: finishOf(response.finishReason) },
    usage:
      usage === undefined
        ? null
        : {
            prompt_tokens: usage.promptTokens - (usage.cachedTokens ?? 0),
            completion_tokens: usage.completionTokens,
            cached_input_tokens: usage.cachedTokens ?? null,
            cost: costUsd ?? null,
          },
  };
}

function finishOf(reason: string | undefined): "stop" | "length" | "tool_calls" | null {
  if (reason === undefined) return null;
  if (/length|max_(output_)?tokens/.test(reason)) return "length";
  return /tool|function_call/.test(reason) ? "tool_calls" : "stop";
}

function rewardsOf({ record, reward, excluded }: HandedRollout): VerifiersTrace["rewards"] {
  if (excluded !== null) return {};
  if (record.scores.length > 0)
    return Object.fromEntries(
      record.scores.map(({ name, value, weight }) => [name, { score: value, weight }]),
    );
  return reward === null ? {} : { [UNNAMED_REWARD]: { score: reward, weight: 1 } };
}

function errorsOf(ending: Ending): VerifiersError[] {
  if (ending.kind === "cancelled") return [{ type: "CancelledError", message: "the rollout was cancelled" }];
  return ending.kind === "failed" ? [{ type: `${ending.owner}Error`, message: ending.message }] : [];
}

function stopOf(ending: Ending): Pick<VerifiersTrace, "stop_condition" | "is_timeout"> {
  if (ending.kind !== "truncated") return { stop_condition: null, is_timeout: false };
  const stops = { turns: "max_turns", tokens: "max_total_tokens", time: "timeout", budget: "max_cost" };
  return { stop_condition: stops[ending.limit], is_timeout: ending.limit === "time" };
}
