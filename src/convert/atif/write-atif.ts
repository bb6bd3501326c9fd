/** Rollouts as ATIF trajectories, one JSON object per line. A trajectory is one conversation. For a rollout with forks
 *  it is the last conversation, and the extras hold the others. A reply that was sampled in one piece has its ids and
 *  log-probabilities on its step. Arguments of a tool call must be an object; other text is kept under
 *  `arguments_text`. */
import { isObject, type Json } from "../../base/index.ts";
import { readTurn, sameTurn } from "../chat/index.ts";
import type { HandedConversation, HandedRollout, HandedTokens, TrainerFormat } from "../handover/index.ts";
import {
  EXTRAS_KEY,
  TRACED_PARTS,
  type TraceExtras,
  type TraceMessage,
  traceExtras,
  traceMessages,
  traceTools,
  wholeFor,
} from "../traces/index.ts";
import {
  ARGUMENTS_TEXT,
  ATIF_VERSION,
  type AtifMetrics,
  type AtifStep,
  type AtifTrajectory,
} from "./atif-records.ts";
import { readTrajectory } from "./read-atif.ts";

export const atifTrajectories: TrainerFormat<AtifTrajectory> = {
  from: "rollouts",
  together: "group",
  carried: TRACED_PARTS,
  async *rows(rollouts, { batch, losses }) {
    for await (const rollout of rollouts) {
      const conversation = rollout.conversations.at(-1);
      // The format requires at least one agent step.
      if (conversation === undefined || !conversation.turns.some(({ role }) => role === "assistant")) {
        losses.add("rollouts without a reply");
        continue;
      }
      losses.addParts(rollout, TRACED_PARTS);
      const extras = await traceExtras(rollout, batch);
      const trajectory = trajectoryOf(rollout, { conversation, extras });
      const read = { where: rollout.record.rolloutId, options: { dataSource: "real" } } as const;
      const whole = await wholeFor(rollout, readTrajectory(trajectory, read), losses);
      yield whole === undefined
        ? trajectory
        : trajectoryOf(rollout, { conversation, extras: { ...extras, whole } });
    }
  },
};

function trajectoryOf(
  rollout: HandedRollout,
  { conversation, extras }: { conversation: HandedConversation; extras: TraceExtras },
): AtifTrajectory {
  const { record, calls, times } = rollout;
  const [name, version = "1"] = record.environment.split("@");
  const steps = stepsOf(conversation, metricsAt(rollout, conversation));
  const total = (pick: (metrics: AtifMetrics) => number | undefined) =>
    steps.reduce((sum, { metrics }) => sum + ((metrics && pick(metrics)) ?? 0), 0);
  const tools = traceTools(conversation.tools);
  const { scores } = record;
  return {
    schema_version: ATIF_VERSION,
    session_id: record.rolloutId,
    agent: {
      ...{ name: name!, version, model_name: conversation.model },
      ...(tools.length === 0
        ? {}
        : { tool_definitions: tools.map((each) => ({ type: "function", function: each })) }),
    },
    steps: steps.map((step) =>
      times === undefined ? step : { ...step, timestamp: new Date(times.startedAtMs).toISOString() },
    ),
    final_metrics: {
      total_prompt_tokens: total(({ prompt_tokens }) => prompt_tokens),
      total_completion_tokens: total(({ completion_tokens }) => completion_tokens),
      ...(calls.some((call) => call.record.costUsd !== undefined)
        ? { total_cost_usd: total(({ cost_usd }) => cost_usd) }
        : {}),
      total_steps: steps.length,
    },
    extra: {
      [EXTRAS_KEY]: {
        ...extras,
        scores: scores.map(({ name, value, weight }) => ({ name, value, weight })),
      },
    },
  };
}

/** Metrics, keyed by the position of the reply's turn in the conversation. */
function metricsAt(
  { calls, tokens }: HandedRollout,
  { turns }: HandedConversation,
): ReadonlyMap<number, AtifMetrics> {
  const found = new Map<number, AtifMetrics>();
  for (const [i, { record, prompt }] of calls.entries()) {
    const asked = prompt.map(readTurn);
    if (asked.length >= turns.length || !asked.every((turn, t) => sameTurn(turn, turns[t]!))) continue;
    const { usage, costUsd } = record;
    const own = tokens === null ? {} : tokensOfCall(tokens, i);
    found.set(asked.length, {
      ...(usage === undefined
        ? {}
        : { prompt_tokens: usage.promptTokens, completion_tokens: usage.completionTokens }),
      ...(usage?.cachedTokens === undefined ? {} : { cached_tokens: usage.cachedTokens }),
      ...(costUsd === undefined ? {} : { cost_usd: costUsd }),
      ...own,
    });
  }
  return found;
}

function tokensOfCall({ ids, mask, logprobs, segments }: HandedTokens, call: number): AtifMetrics {
  const own = segments.filter((each) => each.call === call);
  if (own.length === 0) return {};
  const [from, to] = [own[0]!.start, own.at(-1)!.end];
  const first = mask.indexOf(1, from);
  const end = mask.lastIndexOf(1, to - 1) + 1;
  if (first < 0 || first >= to || mask.subarray(first, end).includes(0)) return {};
  return {
    prompt_token_ids: Array.from(ids.subarray(0, first)),
    completion_token_ids: Array.from(ids.subarray(first, end)),
    logprobs: Array.from(logprobs.subarray(first, end)),
  };
}

function stepsOf(
  { turns, model }: HandedConversation,
  metrics: ReadonlyMap<number, AtifMetrics>,
): AtifStep[] {
  const steps: AtifStep[] = [];
  for (const [position, turn] of turns.entries())
    for (const message of traceMessages(turn)) {
      const last = steps.at(-1);
      if (message.role === "tool") {
        // A result must name a call of the same step.
        const known =
          last?.tool_calls?.some(({ tool_call_id }) => tool_call_id === message.tool_call_id) === true;
        const result = { source_call_id: known ? message.tool_call_id! : null, content: message.content };
        if (last?.source === "agent")
          steps[steps.length - 1] = {
            ...last,
            observation: { results: [...(last.observation?.results ?? []), result] },
          };
        else
          steps.push({
            step_id: steps.length + 1,
            source: "system",
            message: "",
            observation: { results: [result] },
          });
        continue;
      }
      const measured = metrics.get(position);
      steps.push({
        ...stepOf(message, steps.length + 1),
        ...(message.role === "assistant" ? { model_name: model } : {}),
        ...(message.role === "assistant" && measured !== undefined && Object.keys(measured).length > 0
          ? { metrics: measured }
          : {}),
      });
    }
  return steps;
}

function stepOf({ role, content, reasoning_content, tool_calls }: TraceMessage, step_id: number): AtifStep {
  return {
    step_id,
    source: role === "assistant" ? "agent" : role === "system" ? "system" : "user",
    message: content ?? "",
    ...(reasoning_content === undefined || role !== "assistant" ? {} : { reasoning_content }),
    ...(tool_calls === undefined
      ? {}
      : {
          tool_calls: tool_calls.map(({ id, name, arguments: text }) => ({
            ...{ tool_call_id: id, function_name: name },
            arguments: argumentsOf(text),
          })),
        }),
  };
}

/** Parses an object only if JSON.stringify would write the same text. Any other text is kept unchanged. */
function argumentsOf(text: string): { readonly [key: string]: Json } {
  try {
    const value = JSON.parse(text) as unknown;
    if (isObject(value) && JSON.stringify(value) === text) return value as { [key: string]: Json };
  } catch {
    // The model did not write JSON. Its text is kept.
  }
  return { [ARGUMENTS_TEXT]: text };
}
