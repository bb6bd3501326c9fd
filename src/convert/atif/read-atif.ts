/** ATIF trajectories as rollouts in the exchange form. In: a file with one trajectory, or one per line. Out: one
 *  rollout per trajectory. Every agent step becomes a call, with the steps before it as its prompt. Unknown versions
 *  are refused. */
import { digestJson, isObject, type Json, parseJson, parseTime, RollbookError } from "../../base/index.ts";
import { readLines } from "../text-lines.ts";
import {
  type ReadTrace,
  readExtras,
  requireShape,
  type TraceCall,
  type TracedRollout,
  type TraceMessage,
  type TraceTokens,
  tracedToRead,
} from "../traces/index.ts";
import {
  ARGUMENTS_TEXT,
  ATIF_VERSIONS,
  type AtifMetrics,
  type AtifStep,
  type AtifTrajectory,
  atifShape,
} from "./atif-records.ts";

const REMEDY = "Check the trajectory against the specification of ATIF.";

export async function* readAtif(
  file: string,
  options: { readonly dataSource: "real" | "synthetic" },
): AsyncGenerator<ReadTrace> {
  for await (const { value, where } of trajectoriesOf(file)) {
    requireVersion(value, where);
    requireShape(atifShape, value, { where, remedy: REMEDY });
    yield tracedToRead(readTrajectory(value as AtifTrajectory, { where, options }), where);
  }
}

/** Reads one trajectory per line, or one document over many lines, as agents write it. */
async function* trajectoriesOf(file: string): AsyncGenerator<{ value: unknown; where: string }> {
  const open: string[] = [];
  let isLines = false;
  for await (const { text, line } of readLines(file)) {
    if (text.trim() === "") continue;
    const where = `${file}:${line}`;
    const whole = open.length === 0 ? parsed(text) : undefined;
    // If an earlier line was a complete trajectory, an incomplete line is damaged.
    if (whole === undefined && !isLines) open.push(text);
    else yield { value: whole ?? parseJson(text, where), where };
    isLines ||= whole !== undefined;
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
  trajectory: AtifTrajectory,
  { where, options }: { where: string; options: { readonly dataSource: "real" | "synthetic" } },
): TracedRollout {
  const { steps, agent } = trajectory;
  const id =
    trajectory.session_id ??
    trajectory.trajectory_id ??
    digestJson("rollbook.atif.v1", trajectory as unknown as Json);
  checkSteps(steps, where);
  const extras = readExtras(trajectory.extra, where);
  const scores = extras?.scores ?? [];
  const { calls, messages } = callsOf(trajectory);
  const times = steps.flatMap(({ timestamp }) => parseTime(timestamp ?? "")?.atMs ?? []);
  return {
    format: "atif",
    id,
    environment: agent?.name ?? "atif",
    task: messages.find(({ role }) => role === "user")?.content ?? id,
    ...{ group: undefined, dataSource: options.dataSource, sampling: {}, calls, scores, extras },
    tokens: streamsOf(steps),
    ending: { kind: "terminal" },
    startedAtMs: times.reduce((least, each) => Math.min(least, each), times[0] ?? 0),
    endedAtMs: times.reduce((most, each) => Math.max(most, each), times[0] ?? 0),
  };
}

function requireVersion(value: unknown, where: string): void {
  const version = isObject(value) ? value.schema_version : undefined;
  if (typeof version === "string" && ATIF_VERSIONS.includes(version)) return;
  throw new RollbookError(
    "unknown-version",
    { where, actual: version, known: ATIF_VERSIONS },
    `${where}: ${isObject(value) ? `schema_version is ${JSON.stringify(version) ?? "missing"}` : "this is not a trajectory, which is a JSON object"}; this release reads ${ATIF_VERSIONS[0]} to ${ATIF_VERSIONS.at(-1)}. Write the trajectory again in one of these, or update Rollbook.`,
  );
}

function checkSteps(steps: readonly AtifStep[], where: string): void {
  const bad = (what: string, i?: number) =>
    new RollbookError(
      "bad-row",
      { where, ...(i === undefined ? {} : { step: i }) },
      `${where}: ${what}. ${REMEDY}`,
    );
  if (steps.length === 0) throw bad("there are no steps");
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

function callsOf({ steps, agent }: AtifTrajectory): {
  calls: TraceCall[];
  messages: readonly TraceMessage[];
} {
  const messages: TraceMessage[] = [];
  const calls: TraceCall[] = [];
  const tools = agent?.tool_definitions ?? [];
  for (const step of steps) {
    const { prompt_tokens, completion_tokens, cached_tokens, cost_usd } = known(step.metrics);
    const message = messageOf(step);
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

function messageOf(step: AtifStep): TraceMessage {
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

/** The tokens of the replies in order. A prompt that does not begin with the earlier tokens starts a new stream. */
function streamsOf(steps: readonly AtifStep[]): TraceTokens[] {
  const streams: { ids: number[]; mask: number[]; logprobs: number[] }[] = [];
  for (const { metrics } of steps) {
    const { prompt_token_ids: prompt, completion_token_ids: said, logprobs } = known(metrics);
    // Tokens without log-probabilities cannot be weighted, and we do not invent any.
    if (!prompt || !said || !logprobs) continue;
    let stream = streams.at(-1);
    if (stream === undefined || !stream.ids.every((id, i) => prompt[i] === id)) {
      stream = { ids: [], mask: [], logprobs: [] };
      streams.push(stream);
    }
    // Adds one token at a time: a call with one argument per token of a long prompt would overflow the stack.
    for (const id of prompt.slice(stream.ids.length)) add(stream, id, 0, 0);
    for (const [i, id] of said.entries()) add(stream, id, 1, logprobs[i]!);
  }
  return streams;
}

function add(
  { ids, mask, logprobs }: { ids: number[]; mask: number[]; logprobs: number[] },
  ...[id, sampled, logprob]: [id: number, sampled: 0 | 1, logprob: number]
): void {
  ids.push(id);
  mask.push(sampled);
  logprobs.push(logprob);
}

/** Some writers store an absent number as null. */
function known(metrics: AtifMetrics | null | undefined): AtifMetrics {
  return Object.fromEntries(Object.entries(metrics ?? {}).filter(([, value]) => value !== null));
}

/** Plain text, or the text of all parts. Parts without text are kept as JSON. */
function textOf(content: unknown): string {
  if (typeof content === "string") return content;
  if (content === null || content === undefined) return "";
  if (!Array.isArray(content)) return JSON.stringify(content);
  const parts = content as unknown[];
  return parts
    .map((part) => (isObject(part) && typeof part.text === "string" ? part.text : JSON.stringify(part)))
    .join("\n");
}
