/** A rollout on its way to another program: its sealed content, its reward, its conversations and the tokens of one
 *  stream. No behaviour. The book gathers it, and every format in the neighbouring folders reads it. */
import type { Digest, Json } from "../../base/index.ts";
import type {
  Call,
  ExclusionReason,
  LogprobKind,
  RolloutContent,
  TokenStream,
} from "../../contract/index.ts";
import type { ChatTurn } from "../chat/index.ts";

export interface HandedTask {
  readonly id: string;
  readonly digest?: Digest | undefined;
  readonly prompt?: Json | undefined;
  /** Passed to the agent verbatim. Absent if the book has no record of the task. */
  readonly payload?: Readonly<Record<string, Json>> | undefined;
  readonly label?: Json | undefined;
}

/** One conversation with one model. Each fork of a rollout gives one. */
export interface HandedConversation {
  readonly turns: readonly ChatTurn[];
  readonly model: string;
  /** Tools in the form in which the call offered them. */
  readonly tools?: unknown;
}

/** A call with its messages. */
export interface HandedCall {
  readonly record: Call;
  readonly prompt: readonly Json[];
  readonly reply: readonly Json[];
  readonly tools?: Json | undefined;
}

export interface HandedTokens {
  /** Index of the stream in the rollout. */
  readonly stream: number;
  readonly family: string;
  readonly ids: Uint32Array;
  readonly logprobs: Float32Array;
  /** 1: the policy sampled the token. */
  readonly mask: Uint8Array;
  readonly turns?: Uint32Array | undefined;
  readonly rewards?: Float32Array | undefined;
  /** Advantages that the artifact claims. */
  readonly claimed?: Float32Array | undefined;
  readonly logprobKind: LogprobKind;
  readonly tokenizer?: Digest | undefined;
  readonly segments: TokenStream["segments"];
  /** Advantage of every sampled token, from the batch. Null if tokens differ or there is no batch. */
  readonly advantage: number | null;
  readonly weightBps: number;
}

export interface HandedRollout {
  readonly content: Digest;
  readonly envelope: Digest | undefined;
  readonly record: RolloutContent;
  readonly times: HandedTimes | undefined;
  readonly task: HandedTask;
  /** Null: unlabelled, or outside the baseline. Neither case is 0. */
  readonly reward: number | null;
  /** Reason why the rollout is outside every baseline: a failure of another owner, or cancelled. Null: a result. */
  readonly excluded: ExclusionReason | null;
  readonly calls: readonly HandedCall[];
  readonly conversations: readonly HandedConversation[];
  readonly tokens: HandedTokens | null;
  /** The records that the content refers to (its task, assignment, environment, revisions), in an order in which
   *  another book can import them. Records that the book no longer holds are left out. */
  records(): Promise<readonly Json[]>;
  /** The exchange form of the content, read from the book. Rejects if a message is no longer in the book. */
  whole(): Promise<{ readonly [key: string]: Json }>;
}

interface HandedTimes {
  readonly startedAtMs: number;
  readonly endedAtMs: number;
}

/** The group of a row: rollouts that answer the same prompt. */
export function groupOf({ record }: HandedRollout): string {
  return record.group ?? record.rolloutId;
}
