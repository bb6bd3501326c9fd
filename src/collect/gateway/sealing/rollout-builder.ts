/** A rollout as its journal tells it: the conversation, the calls, the choices, the tokens. Built when the rollout is
 *  sealed, call by call. Holds digests and numbers, not messages. Does no I/O. */
import type { Digest, Id } from "../../../base/index.ts";
import type { Delivery, LogprobKind, RevisionKey, Step } from "../../../contract/index.ts";
import type { FinishKind, JsonObject, ReplyTokens } from "../dialects/index.ts";
import type { CallOutcome } from "../journal/index.ts";
import { MessageTree } from "./message-tree.ts";
import { TokenBranches } from "./token-branches.ts";

export interface RecordedCall {
  readonly index: number;
  readonly digest: Digest;
  readonly model: string;
  readonly outcome: CallOutcome;
  readonly finish: FinishKind;
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

interface TokenFamily {
  readonly branches: TokenBranches;
  readonly logprobKind: LogprobKind;
  readonly tokenizer: Digest | undefined;
  readonly family: Id;
}

export class RolloutBuilder {
  readonly tree = new MessageTree();
  readonly calls = new Map<number, RecordedCall>();
  readonly steps: { readonly family: Id; readonly step: Step }[] = [];
  readonly tokens = new Map<string, TokenFamily>();
  /** What was put for it and has to be signed: events and media. */
  readonly signed: Digest[] = [];
  /** What shaped the draws, as the first call said it. */
  sampling: JsonObject | undefined;

  /** Unknown calls are left out: a crash took them. */
  mark(call: number, delivery: Delivery): void {
    const known = this.calls.get(call);
    if (known !== undefined) known.delivery = delivery;
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
  }
}
