/** Builds a rollout from its journal: conversation, calls, choices, tokens. In: calls, one by one, when the rollout
 *  is sealed. Out: the parts of its record. Holds digests and numbers, not messages. Does no I/O. */
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
  /** True if the reply asks for tools, so the agent must continue. */
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
  /** Digests of the rollout's blobs that must be signed: events, media and bodies. */
  readonly signed: Digest[] = [];
  /** Sampling parameters of the first call. */
  sampling: JsonObject | undefined;

  /** Ignores unknown calls, which a crash has lost. */
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
