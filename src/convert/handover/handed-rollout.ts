/** A rollout on its way to another program: what was sealed, what it earned, its conversations and the tokens of one stream.
 *  No behaviour. The book gathers it; every format of this folder's neighbours reads it. */
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
  /** Handed to the agent verbatim. Absent where the book has no record of the task. */
  readonly payload?: Readonly<Record<string, Json>> | undefined;
  readonly label?: Json | undefined;
}

/** One conversation with one model; forks of a rollout give one each. */
export interface HandedConversation {
  readonly turns: readonly ChatTurn[];
  readonly model: string;
  /** As the call offered them. */
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
  /** 1: sampled by the policy. */
  readonly mask: Uint8Array;
  readonly turns?: Uint32Array | undefined;
  readonly rewards?: Float32Array | undefined;
  /** Advantages that the artifact claims. */
  readonly claimed?: Float32Array | undefined;
  readonly logprobKind: LogprobKind;
  readonly tokenizer?: Digest | undefined;
  readonly segments: TokenStream["segments"];
  /** Of every sampled token, as the batch computed it; null where tokens differ or there is no batch. */
  readonly advantage: number | null;
  readonly weightBps: number;
}

export interface HandedRollout {
  readonly content: Digest;
  readonly envelope: Digest | undefined;
  readonly record: RolloutContent;
  readonly times: HandedTimes | undefined;
  readonly task: HandedTask;
  /** Null: unlabelled, or outside the baseline. Never 0 for either. */
  readonly reward: number | null;
  /** Why it stands outside every baseline: a failure of others, or cancelled. Null: it is a result. */
  readonly excluded: ExclusionReason | null;
  readonly calls: readonly HandedCall[];
  readonly conversations: readonly HandedConversation[];
  readonly tokens: HandedTokens | null;
  /** The records that the content refers to (its task, assignment, environment, revisions), in the order in which another
   *  book can take them. One that is gone from the book is left out. */
  records(): Promise<readonly Json[]>;
  /** The exchange form of the content, read from the book. Rejects where a message of it is gone. */
  whole(): Promise<{ readonly [key: string]: Json }>;
}

interface HandedTimes {
  readonly startedAtMs: number;
  readonly endedAtMs: number;
}

/** The rows of one group: what was asked once and answered several times. */
export function groupOf({ record }: HandedRollout): string {
  return record.group ?? record.rolloutId;
}
