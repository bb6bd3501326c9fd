/** Conversations for trainers: chat rows for supervised fine-tuning, and pairs of a better and a worse reply.
 *  In: conversations with their rewards. Out: rows of JSON in OpenAI's chat form, which TRL, Axolotl and LLaMA-Factory
 *  read. Pure. Reasoning of a model is left out. Media are named, not embedded. */
import { isObject } from "../../base/index.ts";
import type { ChatPart, ChatTurn } from "./read-turn.ts";

export interface ExportedConversation {
  readonly rolloutId: string;
  readonly task: string;
  /** Rollouts of one group have the same prompt. */
  readonly group: string | null;
  /** Null: unlabelled. */
  readonly reward: number | null;
  readonly model: string;
  readonly turns: readonly ChatTurn[];
  /** Tools in the form in which the call offered them. */
  readonly tools?: unknown;
}

export interface ChatMessage {
  readonly role: string;
  readonly content: string | null;
  readonly tool_calls?: readonly {
    readonly id: string;
    readonly type: "function";
    readonly function: { readonly name: string; readonly arguments: string };
  }[];
  readonly tool_call_id?: string;
}

interface SftRow {
  readonly messages: readonly ChatMessage[];
  readonly tools?: readonly unknown[];
  readonly rollout_id: string;
  readonly task_id: string;
  readonly model: string;
  readonly reward: number | null;
}

interface PairRow {
  /** The prompt of both replies. */
  readonly prompt: readonly ChatMessage[];
  readonly chosen: readonly ChatMessage[];
  readonly rejected: readonly ChatMessage[];
  readonly tools?: readonly unknown[];
  readonly task_id: string;
  readonly chosen_reward: number;
  readonly rejected_reward: number;
  readonly chosen_rollout_id: string;
  readonly rejected_rollout_id: string;
}

/** Undefined for a conversation that does not end with the model's reply, because it has no target. */
export function sftRow(conversation: ExportedConversation): SftRow | undefined {
  const { rolloutId, task, model, reward, turns } = conversation;
  if (turns.at(-1)?.role !== "assistant") return undefined;
  return {
    messages: toMessages(turns),
    ...toolsOf(conversation),
    ...{ rollout_id: rolloutId, task_id: task, model, reward },
  };
}

/** The best and the worst conversation per prompt, if their rewards differ by at least `minGap`. Ties go to the smaller
 *  rollout id. One pair per prompt, in the order of the prompts. */
export function pairRows(
  conversations: Iterable<ExportedConversation>,
  { minGap = 0 }: { minGap?: number } = {},
): PairRow[] {
  const asked = new Map<string, (ExportedConversation & { reward: number })[]>();
  for (const each of conversations) {
    if (each.reward === null || each.turns.at(-1)?.role !== "assistant") continue;
    const key = JSON.stringify([each.task, each.turns.slice(0, promptLength(each))]);
    asked.set(key, [...(asked.get(key) ?? []), { ...each, reward: each.reward }]);
  }
  return [...asked.values()].flatMap((same) => {
    const sorted = same.sort((a, b) => b.reward - a.reward || (a.rolloutId < b.rolloutId ? -1 : 1));
    const [best, worst] = [sorted[0]!, sorted.at(-1)!];
    const gap = best.reward - worst.reward;
    return gap > 0 && gap >= minGap ? [pairOf(best, worst)] : [];
  });
}

function pairOf(
  best: ExportedConversation & { reward: number },
  worst: ExportedConversation & { reward: number },
): PairRow {
  const length = promptLength(best);
  return {
    prompt: toMessages(best.turns.slice(0, length)),
    chosen: toMessages(best.turns.slice(length)),
    rejected: toMessages(worst.turns.slice(length)),
    ...toolsOf(best),
    task_id: best.task,
    ...{ chosen_reward: best.reward, rejected_reward: worst.reward },
    ...{ chosen_rollout_id: best.rolloutId, rejected_rollout_id: worst.rolloutId },
  };
}

/** Number of turns before the model's first turn. */
function promptLength({ turns }: ExportedConversation): number {
  const first = turns.findIndex(({ role }) => role === "assistant");
  return first < 0 ? turns.length : first;
}

export function toMessages(turns: readonly ChatTurn[]): ChatMessage[] {
  return turns.flatMap(({ role, parts }): ChatMessage[] => {
    const results = parts.filter((part) => part.kind === "tool-result");
    const calls = parts.filter((part) => part.kind === "tool-call");
    const text = parts.flatMap(plainText).join("\n");
    const answers = results.map((part) => ({
      role: "tool",
      content: part.text,
      tool_call_id: part.id ?? "",
    }));
    if (role === "tool" || (text === "" && calls.length === 0 && answers.length > 0)) return answers;
    const own: ChatMessage = {
      role,
      content: text === "" && calls.length > 0 ? null : text,
      ...(calls.length === 0 ? {} : { tool_calls: calls.map(toolCallOf) }),
    };
    return [...answers, own];
  });
}

function toolCallOf(
  part: Extract<ChatPart, { kind: "tool-call" }>,
): NonNullable<ChatMessage["tool_calls"]>[number] {
  return { id: part.id ?? "", type: "function", function: { name: part.name, arguments: part.arguments } };
}

/** The part as plain text. Empty for reasoning and tools, which have separate fields. */
export function plainText(part: ChatPart): string[] {
  switch (part.kind) {
    case "text":
      return [part.text];
    case "media":
      return [`[${part.type} ${part.source}]`];
    case "other":
      return [part.json];
    case "thinking":
    case "tool-call":
    case "tool-result":
      return [];
    default:
      return part satisfies never;
  }
}

/** Converts tools to OpenAI's form. Anthropic names the parts of a tool differently. */
function toolsOf({ tools }: ExportedConversation): { tools?: unknown[] } {
  if (!Array.isArray(tools) || tools.length === 0) return {};
  const toOpenAi = (tool: unknown) =>
    isObject(tool) && tool.input_schema !== undefined
      ? {
          type: "function",
          function: { name: tool.name, description: tool.description, parameters: tool.input_schema },
        }
      : tool;
  return { tools: tools.map(toOpenAi) };
}
