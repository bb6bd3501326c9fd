/** Traces of verifiers v1 as rollouts in the exchange form. In: the lines of `traces.jsonl`. Out: one rollout for each
 *  trace. Traces of another version are refused, with the line. */
import { isObject, type Json, RollbookError } from "../../base/index.ts";
import type { Ending } from "../../contract/index.ts";
import { readJsonLines } from "../json-lines.ts";
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
  episodeShape,
  TRACE_VERSION,
  traceShape,
  UNNAMED_REWARD,
  type VerifiersEpisode,
  type VerifiersMessage,
  type VerifiersNode,
  type VerifiersTrace,
} from "./verifiers-records.ts";

const REMEDY = `Write the trace again with records of version ${TRACE_VERSION}.`;

interface ReadTraceOptions {
  readonly dataSource: "real" | "synthetic";
}

export async function* readVerifiers(file: string, options: ReadTraceOptions): AsyncGenerator<ReadTrace> {
  const remedy = "A line holds one episode: {task, traces: […]}";
  for await (const { value, place } of readJsonLines(file, remedy)) {
    const where = `${file}:${place.line}`;
    const { traces } = value;
    if (!Array.isArray(traces))
      throw unknownVersion(where, "no list of traces, as results of verifiers v0", undefined);
    requireShape(episodeShape, value, { where, remedy: REMEDY });
    const episode = value as unknown as VerifiersEpisode;
    for (const [i, trace] of (traces as unknown as VerifiersTrace[]).entries()) {
      const place = `${where}: traces[${i}]`;
      requireVersion(trace, place);
      requireShape(traceShape, trace, { where: place, remedy: REMEDY });
      yield tracedToRead(readTrace(trace, { where: place, options, episode }), place);
    }
  }
}

export function readTrace(
  trace: VerifiersTrace,
  { where, options, episode }: { where: string; options: ReadTraceOptions; episode: VerifiersEpisode },
): TracedRollout {
  const nodes = trace.nodes ?? [];
  checkNodes(nodes, where);
  const extras = readExtras(trace.info, where);
  const data = (trace.task?.data ?? {}) as Record<string, unknown>;
  const { agent } = trace.timing ?? {};
  const start = trace.timing?.start ?? 0;
  const named = Object.entries(trace.rewards ?? {}).filter(([name]) => !(extras && name === UNNAMED_REWARD));
  return {
    format: "verifiers",
    id: trace.id,
    environment: episode.env?.id || "verifiers",
    task: String(data.id ?? trace.task?.key ?? trace.id),
    group: episode.group?.id,
    dataSource: options.dataSource,
    sampling: {},
    calls: callsOf(trace, { nodes, placed: extras !== undefined, where }),
    tokens: leavesOf(nodes).map((leaf) => tokensOf(pathTo(nodes, leaf))),
    // A reward that was not computed stays missing and is not 0.
    scores: named.flatMap(([name, reward]) =>
      reward === null ? [] : [{ name, value: reward.score, weight: reward.weight ?? 1 }],
    ),
    ending: endingOf(trace),
    startedAtMs: start * 1000,
    endedAtMs: (agent?.end ?? start) * 1000,
    extras,
  };
}

function requireVersion(trace: unknown, where: string): void {
  const version = isObject(trace) ? trace.version : undefined;
  if (version !== TRACE_VERSION)
    throw unknownVersion(where, `trace version ${JSON.stringify(version)}`, version);
}

/** Checks the graph: parents come first, masks are as long as ids, and each sampled token has one log-probability. */
function checkNodes(nodes: readonly VerifiersNode[], where: string): void {
  for (const [i, node] of nodes.entries()) {
    const bad = (what: string) =>
      new RollbookError("bad-row", { where, node: i }, `${where}: nodes[${i}] ${what}. ${REMEDY}`);
    const parent = node.parent ?? null;
    const [token_ids, mask, logprobs] = [node.token_ids ?? [], node.mask ?? [], node.logprobs ?? []];
    if (parent !== null && !(Number.isInteger(parent) && parent >= 0 && parent < i))
      throw bad(`has parent ${JSON.stringify(parent)}, which is not a node before it`);
    if (mask.length !== token_ids.length)
      throw bad(`has ${token_ids.length} token ids and a mask of ${mask.length}`);
    const sampled = mask.filter(Boolean).length;
    if (logprobs.length !== sampled)
      throw bad(`has ${logprobs.length} log-probabilities for ${sampled} sampled tokens`);
  }
}

function callsOf(
  trace: VerifiersTrace,
  { nodes, placed, where }: { nodes: readonly VerifiersNode[]; placed: boolean; where: string },
): TraceCall[] {
  // Segments refer to calls of the exported rollout by index, so a call without a reply keeps its position.
  const recorded = (trace.calls ?? []).filter(({ node }) => placed || (node !== null && node !== undefined));
  for (const [i, { node }] of recorded.entries())
    if (node !== null && node !== undefined && node >= nodes.length)
      throw new RollbookError(
        "bad-row",
        { where, call: i },
        `${where}: calls[${i}] names node ${node}, and there are ${nodes.length} nodes. ${REMEDY}`,
      );
  const calls =
    recorded.length > 0
      ? recorded
      : nodes.flatMap(({ sampled }, node) => (sampled ? [{ node, model: undefined, usage: undefined }] : []));
  return calls.map(({ node, model, usage, ...rest }): TraceCall => {
    const path = node === null || node === undefined ? [] : pathTo(nodes, node);
    const tools = path[0]?.tools ?? [];
    const cached = usage?.cached_input_tokens ?? undefined;
    return {
      prompt: path.slice(0, -1).map(({ message }) => messageOf(message)),
      reply: path.slice(-1).map(({ message }) => messageOf(message)),
      model: model ?? trace.agent?.config?.model ?? "unknown",
      ...(tools.length === 0 ? {} : { tools: tools.map(openAiTool) }),
      ...(usage
        ? {
            usage: {
              promptTokens: usage.prompt_tokens + (cached ?? 0),
              completionTokens: usage.completion_tokens,
              ...(cached === undefined ? {} : { cachedTokens: cached }),
            },
          }
        : {}),
      ...(typeof usage?.cost === "number" ? { costUsd: usage.cost } : {}),
      ...("finish_reason" in rest && rest.finish_reason ? { finishReason: rest.finish_reason } : {}),
    };
  });
}

function openAiTool(tool: Json): Json {
  return { type: "function", function: tool };
}

function leavesOf(nodes: readonly VerifiersNode[]): number[] {
  const parents = new Set(nodes.map(({ parent }) => parent));
  return [...nodes.keys()].filter((i) => !parents.has(i));
}

function pathTo(nodes: readonly VerifiersNode[], leaf: number): VerifiersNode[] {
  const path: VerifiersNode[] = [];
  for (let at: number | null = leaf; at !== null; at = nodes[at]!.parent ?? null) path.unshift(nodes[at]!);
  return path;
}

function tokensOf(path: readonly VerifiersNode[]): TraceTokens {
  const ids: number[] = [];
  const mask: number[] = [];
  const logprobs: number[] = [];
  for (const node of path) {
    let sampled = 0;
    for (const [i, id] of (node.token_ids ?? []).entries()) {
      const isSampled = node.mask[i] === true;
      ids.push(id);
      mask.push(isSampled ? 1 : 0);
      logprobs.push(isSampled ? node.logprobs[sampled++]! : 0);
    }
  }
  return { ids, mask, logprobs };
}

function messageOf(message: VerifiersMessage): TraceMessage {
  const { role, content, reasoning_content, tool_calls, tool_call_id } = message;
  return {
    role,
    content:
      typeof content === "string" || content === null
        ? content
        : content === undefined
          ? null
          : JSON.stringify(content),
    ...(reasoning_content ? { reasoning_content } : {}),
    ...(tool_calls
      ? { tool_calls: tool_calls.map(({ id, name, arguments: text }) => ({ id, name, arguments: text })) }
      : {}),
    ...(tool_call_id ? { tool_call_id } : {}),
  };
}

const OWNERS: readonly (readonly [RegExp, Extract<Ending, { kind: "failed" }>["owner"]])[] = [
  [/provider|model|api|ratelimit/i, "provider"],
  [/sandbox|runtime|container/i, "sandbox"],
  [/task|taskset/i, "task"],
  [/agent|harness|tool/i, "agent"],
];

function endingOf({ errors, ok, stop_condition, is_timeout }: VerifiersTrace): Ending {
  const error = errors?.at(-1);
  if (error !== undefined || !ok) {
    const type = error?.type ?? "";
    const message = error?.message ?? "the trace is not ok, and names no error";
    const owner = OWNERS.find(([pattern]) => pattern.test(type))?.[1] ?? "infrastructure";
    if (!is_timeout) return { kind: "failed", owner, message: `${type} ${message}`.trim().slice(0, 2000) };
  }
  if (is_timeout) return { kind: "truncated", limit: "time" };
  if (stop_condition === "max_turns") return { kind: "truncated", limit: "turns" };
  if (/^max_\w*tokens$/.test(stop_condition ?? "")) return { kind: "truncated", limit: "tokens" };
  return { kind: "terminal" };
}

function unknownVersion(where: string, found: string, actual: unknown): RollbookError {
  return new RollbookError(
    "unknown-version",
    { where, actual, known: [TRACE_VERSION] },
    `${where}: found ${found}; this release reads verifiers traces of version ${TRACE_VERSION}. Export them again with verifiers 0.4, or update Rollbook.`,
  );
}
