/** The records of verifiers v1 (`traces.jsonl`) that Rollbook reads and writes: the types it writes, and the schemas of
 *  the files it reads. No behaviour. */
import * as z from "zod";
import type { Json } from "../../base/index.ts";

export const TRACE_VERSION = 1;

export interface VerifiersMessage {
  readonly role: "system" | "user" | "assistant" | "tool";
  readonly content?: string | null;
  readonly reasoning_content?: string;
  readonly tool_calls?: readonly { readonly id: string; readonly name: string; readonly arguments: string }[];
  readonly tool_call_id?: string;
}

export interface VerifiersNode {
  readonly parent: number | null;
  readonly message: VerifiersMessage;
  readonly sampled: boolean;
  readonly timestamp: number;
  readonly token_ids: readonly number[];
  readonly mask: readonly boolean[];
  /** One log-probability per true value of the mask. */
  readonly logprobs: readonly number[];
  readonly advantages?: readonly number[];
  readonly tools?: readonly Json[];
}

export interface VerifiersCall {
  readonly node: number | null;
  readonly model?: string | null;
  readonly finish_reason?: "stop" | "length" | "tool_calls" | null;
  readonly usage?: {
    readonly prompt_tokens: number;
    readonly completion_tokens: number;
    readonly cached_input_tokens?: number | null;
    readonly cost?: number | null;
  } | null;
}

export interface VerifiersError {
  readonly type: string;
  readonly message: string;
}

export interface VerifiersTrace {
  readonly version: typeof TRACE_VERSION;
  readonly id: string;
  readonly verifiers: { readonly version: string };
  readonly task: VerifiersTask;
  readonly agent: {
    readonly config: { readonly model?: string | null };
    readonly name: string;
    readonly trainable: boolean;
  };
  readonly tools: readonly Json[];
  readonly nodes: readonly VerifiersNode[];
  readonly calls: readonly VerifiersCall[];
  readonly rewards: Readonly<Record<string, { readonly score: number; readonly weight: number } | null>>;
  readonly info: Readonly<Record<string, unknown>>;
  readonly is_completed: boolean;
  readonly ok: boolean;
  readonly stop_condition: string | null;
  readonly is_timeout: boolean;
  readonly errors: readonly VerifiersError[];
  readonly timing: {
    readonly start: number;
    readonly agent: { readonly start: number; readonly end: number };
  };
}

export interface VerifiersTask {
  readonly type: string;
  readonly data: Readonly<Record<string, unknown>>;
  readonly key: string | null;
}

export interface VerifiersEpisode {
  readonly id: string;
  readonly env: { readonly id: string };
  readonly task: VerifiersTask;
  readonly group: { readonly id: string } | null;
  readonly ok: boolean;
  readonly errors: readonly VerifiersError[];
  readonly traces: readonly VerifiersTrace[];
}

/** Name of the reward of a rollout without a named score, because the format requires a name. */
export const UNNAMED_REWARD = "rollbook.reward";

const text = z.string().nullish();
const amount = z.number().nullish();
const span = z.object({ start: amount, end: amount }).nullish();
const errors = z.array(z.object({ type: text, message: text })).nullish();
const task = z.object({ data: z.record(z.string(), z.unknown()).nullish(), key: text }).nullish();

/** An episode in a file, without its traces. Null counts as an absent field. */
export const episodeShape = z.object({
  env: z.object({ id: text }).nullish(),
  group: z.object({ id: z.string() }).nullish(),
});

export const traceShape = z.object({
  id: z.string(),
  task,
  agent: z.object({ config: z.object({ model: text }).nullish() }).nullish(),
  nodes: z
    .array(
      z.object({
        parent: z.number().nullish(),
        message: z.object({
          role: z.enum(["system", "user", "assistant", "tool"]),
          content: z
            .union([z.string(), z.array(z.unknown())], "expected a text or a list of parts")
            .nullish(),
          reasoning_content: text,
          tool_calls: z
            .array(z.object({ id: z.string(), name: z.string(), arguments: z.string() }))
            .nullish(),
          tool_call_id: text,
        }),
        sampled: z.boolean().nullish(),
        token_ids: z.array(z.number()).nullish(),
        mask: z.array(z.boolean()).nullish(),
        logprobs: z.array(z.number()).nullish(),
        tools: z.array(z.json()).nullish(),
      }),
    )
    .nullish(),
  calls: z
    .array(
      z.object({
        node: z.number().int().min(0).nullish(),
        model: text,
        finish_reason: text,
        usage: z
          .object({
            ...{ prompt_tokens: z.number(), completion_tokens: z.number() },
            ...{ cached_input_tokens: amount, cost: amount },
          })
          .nullish(),
      }),
    )
    .nullish(),
  rewards: z.record(z.string(), z.object({ score: z.number(), weight: amount }).nullable()).nullish(),
  info: z.record(z.string(), z.unknown()).nullish(),
  ok: z.boolean().nullish(),
  stop_condition: text,
  is_timeout: z.boolean().nullish(),
  errors,
  timing: z.object({ start: amount, agent: span }).nullish(),
});
