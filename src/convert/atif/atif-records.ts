/** The records of ATIF (Agent Trajectory Interchange Format), as far as Rollbook reads and writes them. No behaviour. */
import type { Json } from "../../base/index.ts";

export const ATIF_VERSION = "ATIF-v1.7";
/** The versions that are read: each added optional fields. */
export const ATIF_VERSIONS: readonly string[] = Array.from({ length: 9 }, (_, minor) => `ATIF-v1.${minor}`);

/** Where the arguments of a tool call are no JSON object, their text stands under this key of one. */
export const ARGUMENTS_TEXT = "arguments_text";

export interface AtifMetrics {
  readonly prompt_tokens?: number;
  readonly completion_tokens?: number;
  readonly cached_tokens?: number;
  readonly cost_usd?: number;
  readonly prompt_token_ids?: readonly number[];
  readonly completion_token_ids?: readonly number[];
  readonly logprobs?: readonly number[];
}

export interface AtifStep {
  /** From 1. */
  readonly step_id: number;
  readonly timestamp?: string;
  readonly source: "system" | "user" | "agent";
  readonly model_name?: string;
  readonly message: string;
  readonly reasoning_content?: string;
  readonly tool_calls?: readonly {
    readonly tool_call_id: string;
    readonly function_name: string;
    readonly arguments: { readonly [key: string]: Json };
  }[];
  readonly observation?: {
    readonly results: readonly {
      readonly source_call_id?: string | null;
      readonly content?: string | null;
    }[];
  };
  readonly metrics?: AtifMetrics;
}

export interface AtifTrajectory {
  readonly schema_version: string;
  /** Optional since v1.7. */
  readonly session_id?: string | null;
  readonly trajectory_id?: string | null;
  readonly agent: {
    readonly name: string;
    readonly version: string;
    readonly model_name?: string;
    readonly tool_definitions?: readonly Json[];
  };
  readonly steps: readonly AtifStep[];
  readonly final_metrics?: {
    readonly total_prompt_tokens?: number;
    readonly total_completion_tokens?: number;
    readonly total_cached_tokens?: number;
    readonly total_cost_usd?: number;
    readonly total_steps?: number;
  };
  readonly extra?: Readonly<Record<string, unknown>>;
}
