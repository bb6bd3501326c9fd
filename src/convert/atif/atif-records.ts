/** The records of ATIF (Agent Trajectory Interchange Format) that Rollbook reads and writes: the types it writes, and
 *  the schema of the files it reads. No behaviour. */
import * as z from "zod";
import type { Json } from "../../base/index.ts";

export const ATIF_VERSION = "ATIF-v1.7";
/** The versions that can be read. Each version added optional fields. */
export const ATIF_VERSIONS: readonly string[] = Array.from({ length: 9 }, (_, minor) => `ATIF-v1.${minor}`);

/** Arguments of a tool call that are not a JSON object are stored as text under this key of an object. */
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
  /** Counts from 1. */
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

const text = z.string().nullish();
const amount = z.number().nullish();
const parts = z.union([z.string(), z.array(z.unknown())], "expected a text or a list of parts").nullish();

/** A trajectory in a file. Null counts as an absent field. The reader checks ids and sources of steps separately. */
export const atifShape = z.object({
  session_id: text,
  trajectory_id: text,
  agent: z.object({ name: text, model_name: text, tool_definitions: z.array(z.json()).nullish() }).nullish(),
  steps: z.array(
    z.object({
      source: z.string(),
      message: parts,
      reasoning_content: text,
      model_name: text,
      timestamp: text,
      tool_calls: z
        .array(
          z.object({
            tool_call_id: z.string(),
            function_name: z.string(),
            arguments: z.record(z.string(), z.unknown()),
          }),
        )
        .nullish(),
      observation: z
        .object({ results: z.array(z.object({ source_call_id: text, content: parts })) })
        .nullish(),
      metrics: z
        .object({
          ...{ prompt_tokens: amount, completion_tokens: amount, cached_tokens: amount, cost_usd: amount },
          prompt_token_ids: z.array(z.number()).nullish(),
          completion_token_ids: z.array(z.number()).nullish(),
          logprobs: z.array(z.number()).nullish(),
        })
        .nullish(),
    }),
  ),
  extra: z.record(z.string(), z.unknown()).nullish(),
});
