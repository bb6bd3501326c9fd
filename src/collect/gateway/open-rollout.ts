/** A rollout while it is open: what it is for, what has been called, what was chosen, which tokens came back.
 *  Holds digests and numbers, not messages. In: calls as they are recorded. Out: the state that sealing reads.
 *  Does no I/O: the journal tells the store, and a journal read back builds the same state. */
import { canonicalize } from "../../base/canonical-json.ts";
import type { Digest } from "../../base/digest.ts";
import type { Id } from "../../base/ids.ts";
import type { Call, Delivery, LogprobKind, RevisionKey, RolloutEvent, Step } from "../../contract/index.ts";
import type { ReplyTokens } from "./dialects/dialect.ts";
import type { JsonObject } from "./dialects/json.ts";
import { MessageTree } from "./message-tree.ts";
import { sharedLength, TokenBranches } from "./token-branches.ts";

export type EventOf<K extends RolloutEvent["event"]["kind"]> = Extract<RolloutEvent["event"], { kind: K }>;
export type Opening = EventOf<"opened">;
export type Grade = EventOf<"graded">;
export type CallOutcome = EventOf<"called">["outcome"];

export interface RecordedCall {
  readonly index: number;
  readonly digest: Digest;
  readonly model: string;
  readonly outcome: CallOutcome;
  readonly finishReason: string | undefined;
  /** The reply asks for tools: the agent has to go on. */
  readonly wantsTools: boolean;
  readonly startedAtMs: number;
  readonly firstByteMs: number | undefined;
  readonly durationMs: number;
  readonly parent: number | undefined;
  delivery: Delivery;
}

export interface TokenFacts extends ReplyTokens {
  readonly family: Id;
  readonly revision: RevisionKey;
  readonly logprobKind: LogprobKind;
  readonly tokenizer: Digest | undefined;
}

export interface TokenFamily {
  readonly branches: TokenBranches;
  readonly logprobKind: LogprobKind;
  readonly tokenizer: Digest | undefined;
  readonly family: Id;
}

export class OpenRollout {
  readonly id: Id;
  /** Its id as JSON, and as it stands in a header. */
  readonly headerId: string;
  readonly idText: string;
  readonly opening: Opening;
  readonly tree = new MessageTree();
  readonly calls = new Map<number, RecordedCall>();
  readonly steps: { readonly family: Id; readonly step: Step }[] = [];
  readonly grades: Grade[] = [];
  readonly tokens = new Map<string, TokenFamily>();
  /** Marks that the journal has not heard of yet. */
  pendingDeliveries: { call: number; delivery: Delivery }[] = [];
  /** What shaped the draws, as the first call said it. */
  sampling: JsonObject | undefined;
  costUsd = 0;
  promptTokens = 0;
  completionTokens = 0;
  /** Numbers given out: one per call, recorded or in progress. */
  started = 0;
  active = 0;
  /** Called when no call is in progress any more. */
  readonly whenQuiet: (() => void)[] = [];
  lastUsedMs: number;
  closing: Promise<unknown> | undefined;
  /** What cut it short, if a cap did. */
  capped: "turns" | "budget" | undefined;
  #lastSequence: number[] = [];

  constructor(id: Id, opening: Opening) {
    this.id = id;
    this.idText = canonicalize(id);
    this.headerId = encodeURIComponent(id);
    this.opening = opening;
    this.lastUsedMs = opening.atMs;
  }

  get turns(): number {
    return this.started;
  }

  addCall(call: RecordedCall): void {
    this.calls.set(call.index, call);
    this.started = Math.max(this.started, call.index + 1);
  }

  /** Counts what a call used, where the upstream says it. */
  addUsage(usage: Call["usage"], costUsd: number | undefined): void {
    this.promptTokens += usage?.promptTokens ?? 0;
    this.completionTokens += usage?.completionTokens ?? 0;
    this.costUsd += costUsd ?? 0;
  }

  mark(call: number, delivery: Delivery): void {
    const known = this.calls.get(call);
    if (known === undefined || known.delivery === delivery) return;
    known.delivery = delivery;
    this.pendingDeliveries.push({ call, delivery });
  }

  /** How much of this prompt repeats the call with tokens before it. */
  keepOf(prompt: readonly number[]): number {
    return sharedLength(this.#lastSequence, prompt);
  }

  /** The prompt again, from what was stored of it. */
  promptFrom(keep: number, rest: readonly number[]): number[] {
    return [...this.#lastSequence.slice(0, keep), ...rest];
  }

  addTokens(call: number, facts: TokenFacts): void {
    const { family, logprobKind, tokenizer, prompt, samples, revision } = facts;
    const key = `${family}\n${logprobKind}\n${tokenizer ?? ""}`;
    let known = this.tokens.get(key);
    if (known === undefined) {
      known = { branches: new TokenBranches(), logprobKind, tokenizer, family };
      this.tokens.set(key, known);
    }
    known.branches.add({ call, revision, prompt, samples });
    this.#lastSequence = [...prompt, ...samples[0]!.ids];
  }
}
