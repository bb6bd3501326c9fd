/** ATIF trajectories as rollouts in the exchange form. In: a file with one trajectory, or one a line. Out: one rollout each.
 *  Every agent step becomes a call; the steps before it are its prompt. A version that is not known is refused. */
import { digestJson, isObject, type Json, parseJson, RollbookError } from "../../base/index.ts";
import { readLines } from "../text-lines.ts";
import {
  readExtras,
  rolloutOfTrace,
  type TraceCall,
  type TracedRollout,
  type TraceMessage,
  type TraceTokens,
} from "../traces/index.ts";
import {
  ARGUMENTS_TEXT,
  ATIF_VERSIONS,
  type AtifMetrics,
  type AtifStep,
  type AtifTrajectory,
} from "./atif-records.ts";

export async function* readAtif(
  file: string,
  options: { readonly dataSource: "real" | "synthetic" },
): AsyncGenerator<Record<string, Json>> {
  for await (const { value, where } of trajectoriesOf(file))
    yield rolloutOfTrace(readTrajectory(value, { where, options }));
}

/** A trajectory a line; or one document over many lines, as agents write it. */
async function* trajectoriesOf(file: string): AsyncGenerator<{ value: unknown; where: string }> {
  const open: string[] = [];
  for await (const { text, line } of readLines(file)) {
    if (text.trim() === "") continue;
    const whole = open.length === 0 ? parsed(text) : undefined;
    if (whole !== undefined) yield { value: whole, where: `${file}:${line}` };
    else open.push(text);
  }
  if (open.length > 0) yield { value: parseJson(open.join("\n"), file), where: file };
}

function parsed(text: string): unknown {
  if (!text.trimEnd().endsWith("}")) return undefined;
  try {
    return parseJson(text, "line");
  } catch {
    return undefined;
  }
}

export function readTrajectory(
  value: unknown,
  { where, options }: { where: string; options: { readonly dataSource: "real" | "synthetic" } },
): TracedRollout {
  const trajectory = value as AtifTrajectory;
  if (!isObject(value) || !ATIF_VERSIONS.includes(trajectory.schema_version))
    throw new RollbookError(
      "unknown-version",
      { where, actual: isObject(value) ? value.schema_version : undefined, known: ATIF_VERSIONS },
      `${where}: schema_version is ${JSON.stringify(isObject(value) ? value.schema_version : undefined)}; this release reads ${ATIF_VERSIONS[0]} to ${ATIF_VERSIONS.at(-1)}. Write the trajectory again in one of these, or update Rollbook.`,
    );
  const { steps, agent } = trajectory;
  const id =
    trajectory.session_id ?? trajectory.trajectory_id ?? digestJson("rollbook.atif.v1", value as Json);
  checkSteps(steps, where);
  const extras = readExtras(trajectory.extra, where);
  const scores =
    (extras as { scores?: { name: string; value: number; weight: number }[] } | undefined)?.scores ?? [];
  const { calls, messages } = callsOf(trajectory, where);
  const times = steps
    .flatMap(({ timestamp }) => (timestamp ? [Date.parse(timestamp)] : []))
    .filter(Number.isFinite);
  return {
    format: "atif",
    id,
    environment: agent?.name ?? "atif",
    task: messages.find(({ role }) => role === "user")?.content ?? id,
    ...{ group: undefined, dataSource: options.dataSource, sampling: {}, calls, scores, extras },
    tokens: streamsOf(steps),
    ending: { kind: "terminal" },
    startedAtMs: times.length === 0 ? 0 : Math.min(...times),
    endedAtMs: times.length === 0 ? 0 : Math.max(...times),
  };
}

function checkSteps(steps: readonly AtifStep[], where: string): void {
  const bad = (what: string, i?: number) =>
    new RollbookError(
      "bad-row",
      { where, ...(i === undefined ? {} : { step: i }) },
      `${where}: ${what}. Check the trajectory against the specification of ATIF.`,
    );
  if (!Array.isArray(steps) || steps.length === 0) throw bad("there are no steps");
  for (const [i, { step_id, source, metrics }] of steps.entries()) {
    if (step_id !== i + 1) throw bad(`steps[${i}] has step_id ${JSON.stringify(step_id)}, not ${i + 1}`, i);
    if (!["system", "user", "agent"].includes(source))
      throw bad(`steps[${i}] has source ${JSON.stringify(source)}`, i);
    const { completion_token_ids: ids, logprobs } = known(metrics);
    if (logprobs && ids && logprobs.length !== ids.length)
      throw bad(
        `steps[${i}] has ${logprobs.length} log-probabilities for ${ids.length} completion tokens`,
        i,
      );
  }
  if (!steps.some(({ source }) => source === "agent")) throw bad("no step is the agent's");
}

function callsOf(
  { steps, agent }: AtifTrajectory,
  where: string,
): { calls: TraceCall[]; messages: readonly TraceMessage[] } {
  const messages: TraceMessage[] = [];
  const calls: TraceCall[] = [];
  const tools = agent?.tool_definitions ?? [];
  for (const step of steps) {
    const { prompt_tokens, completion_tokens, cached_tokens, cost_usd } = known(step.metrics);
    const message = messageOf(step, where);
    if (step.source === "agent")
      calls.push({
        prompt: [...messages],
        reply: [message],
        model: step.model_name ?? agent?.model_name ?? "unknown",
        ...(tools.length === 0 ? {} : { tools: [...tools] }),
        ...(prompt_tokens === undefined || completion_tokens === undefined
          ? {}
          : {
              usage: {
                ...{ promptTokens: prompt_tokens, completionTokens: completion_tokens },
                ...(cached_tokens === undefined ? {} : { cachedTokens: cached_tokens }),
              },
            }),
        ...(cost_usd === undefined ? {} : { costUsd: cost_usd }),
      });
    if (step.message !== "" || step.source === "agent") messages.push(message);
    for (const { source_call_id, content } of step.observation?.results ?? [])
      messages.push({ role: "tool", content: textOf(content), tool_call_id: source_call_id ?? "" });
  }
  return { calls, messages };
}

function messageOf(step: AtifStep, where: string): TraceMessage {
  const { source, message, reasoning_content } = step;
  const tool_calls = step.tool_calls ?? undefined;
  if (source !== "agent") return { role: source, content: textOf(message) };
  return {
    role: "assistant",
    content: message === "" && tool_calls !== undefined ? null : textOf(message),
    ...(reasoning_content ? { reasoning_content } : {}),
    ...(tool_calls === undefined
      ? {}
      : {
          tool_calls: tool_calls.map(({ tool_call_id, function_name, arguments: given }) => {
            if (!isObject(given))
              throw new RollbookError(
                "bad-row",
                { where, step: step.step_id },
                `${where}: step ${step.step_id} calls ${function_name} with arguments that are not an object. ATIF demands one.`,
              );
            const text = given[ARGUMENTS_TEXT];
            const isText = typeof text === "string" && Object.keys(given).length === 1;
            return {
              id: tool_call_id,
              name: function_name,
              arguments: isText ? text : JSON.stringify(given),
            };
          }),
        }),
  };
}

/** The tokens of the replies in order. A prompt that does not begin with what came before starts a stream of its own. */
function streamsOf(steps: readonly AtifStep[]): TraceTokens[] {
  const streams: { ids: number[]; mask: number[]; logprobs: number[] }[] = [];
  for (const { metrics } of steps) {
    const { prompt_token_ids: prompt, completion_token_ids: said, logprobs } = known(metrics);
    // Without log-probabilities there is nothing to weigh a token by, and none are made up.
    if (!prompt || !said || !logprobs) continue;
    let stream = streams.at(-1);
    if (stream === undefined || !stream.ids.every((id, i) => prompt[i] === id)) {
      stream = { ids: [], mask: [], logprobs: [] };
      streams.push(stream);
    }
    const fresh = prompt.slice(stream.ids.length);
    stream.ids.push(...fresh, ...said);
    stream.mask.push(...fresh.map(() => 0), ...said.map(() => 1));
    stream.logprobs.push(...fresh.map(() => 0), ...logprobs);
  }
  return streams;
}

/** Some writers spell an absent number as null. */
function known(metrics: AtifMetrics | null | undefined): AtifMetrics {
  return Object.fromEntries(Object.entries(metrics ?? {}).filter(([, value]) => value !== null));
}

/** Text, or parts of which those without text are kept as JSON. */
function textOf(content: unknown): string {
  if (typeof content === "string") return content;
  if (content === null || content === undefined) return "";
  if (!Array.isArray(content)) return JSON.stringify(content);
  const parts = content as unknown[];
  return parts
    .map((part) => (isObject(part) && typeof part.text === "string" ? part.text : JSON.stringify(part)))
    .join("\n");
}
