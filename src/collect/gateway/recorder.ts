/** Writes calls into the book. In: a request as soon as it is known, its reply as soon as it is whole. Out: message,
 *  media, call and journal blobs, put in an order in which a crash leaves nothing half-named; `commit` makes them
 *  durable, all that wait with one fsync. Does not decide what is sent to whom. */
import { canonicalize, type Json } from "../../base/canonical-json.ts";
import { type Digest, digestBytes } from "../../base/digest.ts";
import { isRollbookError } from "../../base/errors.ts";
import type { Id } from "../../base/ids.ts";
import { Call, MEDIA_KIND, MESSAGE_KIND, type Step } from "../../contract/index.ts";
import type { BlobStore } from "../../store/index.ts";
import type { DialectName, ReplyFacts, RequestFacts } from "./dialects/dialect.ts";
import { define, isObject, type JsonObject } from "./dialects/json.ts";
import { addReply, putEvent, putTokens } from "./journal.ts";
import { extractMedia } from "./media.ts";
import type { Place, TreeMessage } from "./message-tree.ts";
import type { CallOutcome, OpenRollout, TokenFacts } from "./open-rollout.ts";
import { type Redact, redactStrings } from "./redact.ts";
import { samplingOf, wantsTools } from "./reply-facts.ts";
import type { Target } from "./routes.ts";
import { isReply, messageKey } from "./same-message.ts";

const BODY_TAG = "rollbook.body.v1";

/** The request half of a call, stored while the upstream thinks. */
export interface PreparedRequest {
  readonly messages: readonly Digest[];
  readonly tools: Digest | undefined;
  readonly media: readonly Digest[];
  readonly parameters: JsonObject;
  readonly tree: readonly TreeMessage[];
  readonly redacted: boolean;
}

export interface CallRecord {
  readonly rollout: OpenRollout;
  readonly index: number;
  readonly place: Place;
  readonly dialect: DialectName;
  readonly target: Target;
  readonly prepared: PreparedRequest;
  readonly body: Uint8Array;
  /** What went out, if it was not `body`. */
  readonly sent: Uint8Array | undefined;
  readonly status: number;
  readonly reply: ReplyFacts;
  readonly replyDigest: Digest | undefined;
  readonly outcome: CallOutcome;
  readonly steps: readonly Step[];
  readonly stepFamily: Id | undefined;
  readonly startedAtMs: number;
  readonly firstByteMs: number | undefined;
  readonly durationMs: number;
}

export class Recorder {
  readonly #store: Pick<BlobStore, "put" | "flush">;
  readonly #redactText: ((text: string) => string) | undefined;
  readonly #redact: Redact | undefined;

  constructor(options: {
    store: Pick<BlobStore, "put" | "flush">;
    redactText: ((text: string) => string) | undefined;
    redact: Redact | undefined;
  }) {
    this.#store = options.store;
    this.#redactText = options.redactText;
    this.#redact = options.redact;
  }

  prepare(request: RequestFacts): PreparedRequest {
    const media: Digest[] = [];
    const seen = { redacted: false };
    const tree: TreeMessage[] = [];
    const messages = request.messages.map((message) => {
      const { digest, recorded } = this.#putMessage(message, media, seen);
      tree.push({ key: messageKey(recorded), isReply: isReply(recorded) });
      return digest;
    });
    const tools =
      request.tools === undefined ? undefined : this.#putMessage(request.tools, media, seen).digest;
    const parameters = this.#clean(request.parameters, seen) as JsonObject;
    return { messages, tools, media, parameters, tree, redacted: seen.redacted };
  }

  /** Puts the whole call; durable once `commit` resolves. */
  record(call: CallRecord): void {
    const { rollout, index, prepared, reply, target, outcome } = call;
    const seen = { redacted: prepared.redacted };
    const media = [...prepared.media];
    const replies = reply.messages.map((message) => this.#putMessage(message, media, seen));
    const costUsd = costOf(reply, target);
    const digest = this.#putCall(call, { replies: replies.map((each) => each.digest), media, costUsd });
    // The ids of a text spell the text: what is redacted there must not come back here.
    const facts = seen.redacted || outcome !== "answered" ? undefined : tokenFacts(reply, target);
    const tokens = facts === undefined ? undefined : putTokens(this.#store, rollout, facts);
    for (const received of call.place.received) rollout.mark(received, "sent");
    const deliveries = rollout.pendingDeliveries;
    rollout.pendingDeliveries = [];
    putEvent(this.#store, rollout.id, {
      kind: "called",
      index,
      call: digest,
      steps: [...call.steps],
      ...(call.stepFamily === undefined ? {} : { stepFamily: call.stepFamily }),
      ...(call.place.parent === undefined ? {} : { parent: call.place.parent }),
      ...(tokens === undefined ? {} : { tokens }),
      outcome,
      startedAtMs: call.startedAtMs,
      ...(call.firstByteMs === undefined ? {} : { firstByteMs: call.firstByteMs }),
      durationMs: call.durationMs,
      deliveries,
    });
    const recorded = replies.map((each) => each.recorded);
    rollout.addCall({
      ...{ index, digest, outcome, model: target.model, parent: call.place.parent },
      finishReason: reply.finishReason,
      wantsTools: recorded.some(wantsTools),
      sampling: samplingOf(prepared.parameters),
      ...{ startedAtMs: call.startedAtMs, firstByteMs: call.firstByteMs, durationMs: call.durationMs },
      delivery: outcome === "disconnected" ? "aborted" : "unknown",
    });
    rollout.costUsd += costUsd ?? 0;
    for (const step of call.steps) rollout.steps.push({ family: call.stepFamily!, step });
    if (facts !== undefined) rollout.addTokens(index, facts);
    if (outcome === "answered") addReply(rollout, { index, dialect: call.dialect, messages: recorded });
  }

  commit(): Promise<void> {
    return this.#store.flush();
  }

  #putCall(
    call: CallRecord,
    parts: { replies: Digest[]; media: Digest[]; costUsd: number | undefined },
  ): Digest {
    const { prepared, reply, target, body, sent } = call;
    const { family, revision } = target;
    const { tools } = prepared;
    const { finishReason, usage } = reply;
    const { media, replies, costUsd } = parts;
    return this.#store.put(
      Call.kind,
      Buffer.from(
        canonicalize({
          schema: Call.kind,
          dialect: call.dialect,
          model: target.model,
          revision: revision === undefined ? undefined : { family, ...revision },
          request: {
            messages: prepared.messages,
            tools,
            parameters: prepared.parameters,
            bodyDigest: digestBytes(BODY_TAG, body),
            sentDigest: sent === undefined ? undefined : digestBytes(BODY_TAG, sent),
          },
          response: { messages: replies, finishReason, status: call.status, bodyDigest: call.replyDigest },
          media: media.length === 0 ? undefined : [...new Set(media)],
          usage,
          tokenizer: target.tokenizer,
          costUsd,
        }),
      ),
    );
  }

  #putMessage(message: unknown, media: Digest[], seen: { redacted: boolean }) {
    const extracted = extractMedia(message);
    for (const { digest, bytes } of extracted.media) {
      this.#store.put(MEDIA_KIND, bytes);
      media.push(digest);
    }
    const recorded = this.#clean(extracted.message, seen);
    const digest = this.#store.put(MESSAGE_KIND, Buffer.from(canonicalize(recorded)));
    return { digest, recorded };
  }

  /** The value as it may be recorded: without secrets, and such that it has a canonical form. */
  #clean(value: unknown, seen: { redacted: boolean }): unknown {
    let clean = this.#redact === undefined ? value : this.#redact(value as Json);
    if (this.#redactText !== undefined) clean = redactStrings(clean, this.#redactText);
    if (clean !== value) seen.redacted = true;
    try {
      canonicalize(clean);
      return clean;
    } catch (error) {
      if (!isRollbookError(error)) throw error;
      return repair(clean, 0);
    }
  }
}

export function digestBody(bytes: Uint8Array): Digest {
  return digestBytes(BODY_TAG, bytes);
}

function costOf({ usage }: ReplyFacts, { price }: Target): number | undefined {
  if (usage === undefined || price === undefined) return undefined;
  const cached = Math.min(usage.cachedTokens ?? 0, usage.promptTokens);
  const prompt = (usage.promptTokens - cached) * price.prompt + cached * (price.cached ?? price.prompt);
  return (prompt + usage.completionTokens * price.completion) / 1e6;
}

function tokenFacts({ tokens }: ReplyFacts, target: Target): TokenFacts | undefined {
  const { logprobKind, family, revision, tokenizer } = target;
  if (tokens === undefined || logprobKind === undefined || family === undefined || revision === undefined)
    return undefined;
  return { ...tokens, family, revision, logprobKind, tokenizer };
}

/** Models and clients do send lone surrogates, 1e999 and deep nests: the record keeps what JSON can carry of them. */
const MAX_RECORDED_DEPTH = 100;

function repair(value: unknown, depth: number): unknown {
  if (typeof value === "string") return value.toWellFormed();
  if (typeof value === "number") return Number.isFinite(value) ? value : null;
  if (depth >= MAX_RECORDED_DEPTH) return "[nested too deep to be recorded]";
  if (Array.isArray(value)) return value.map((item) => repair(item, depth + 1));
  if (!isObject(value)) return value ?? null;
  const out: JsonObject = {};
  for (const [key, item] of Object.entries(value)) define(out, key.toWellFormed(), repair(item, depth + 1));
  return out;
}
