/** The records of verifiers v1 (`traces.jsonl`), as far as Rollbook reads and writes them. No behaviour. */
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
  /** As many as the mask has true values. */
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

/** The reward of a rollout that has no named score, where the format wants a name. */
export const UNNAMED_REWARD = "rollbook.reward";
