/** Writes calls into the book. In: a request as soon as it is known, its reply as soon as it is whole. Out: message,
 *  media, call and journal blobs, put in an order in which a crash leaves nothing half-named; `commit` makes them
 *  durable, all that wait with one fsync. Does not decide what is sent to whom. */
import { canonicalize, type Json } from "../../base/canonical-json.ts";
import { type Digest, digestTagged } from "../../base/digest.ts";
import { isRollbookError } from "../../base/errors.ts";
import type { Id } from "../../base/ids.ts";
import { Call, MEDIA_KIND, MESSAGE_KIND, type Step } from "../../contract/index.ts";
import type { BlobStore } from "../../store/index.ts";
import type { DialectName, ReplyFacts, RequestFacts } from "./dialects/dialect.ts";
import { define, isObject, type JsonObject } from "./dialects/json.ts";
import { addReply, putCalled, putTokens } from "./journal.ts";
import { extractMedia } from "./media.ts";
import type { Place, TreeMessage } from "./message-tree.ts";
import type { CallOutcome, OpenRollout, TokenFacts } from "./open-rollout.ts";
import { type Redact, redactStrings } from "./redact.ts";
import { samplingOf, wantsTools } from "./reply-facts.ts";
import type { Target } from "./routes.ts";
import { isReply, messageKey } from "./same-message.ts";

export const BODY_PREFIX = Buffer.from("rollbook.body.v1\0");
/** Characters of message text kept to recognize what was stored before. */
const REMEMBERED_CHARS = 16 * 1024 * 1024;

/** A message in the book, and what the tree wants to know of it. */
interface Stored extends TreeMessage {
  readonly digest: Digest;
  readonly wantsTools: boolean;
}

/** What came up while the parts of a call were stored. */
interface Seen {
  readonly media: Digest[];
  redacted: boolean;
}

/** The request half of a call, stored while the upstream thinks. */
export interface PreparedRequest {
  readonly messages: readonly Digest[];
  readonly tools: Digest | undefined;
  readonly media: readonly Digest[];
  readonly parameters: JsonObject;
  /** Its canonical form. */
  readonly parametersText: string;
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
  readonly #stored = new Map<string, Stored>();
  #storedChars = 0;

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
    const seen: Seen = { media: [], redacted: false };
    const tree: TreeMessage[] = [];
    const messages = request.messages.map((message) => {
      const stored = this.#putMessage(message, seen);
      tree.push(stored);
      return stored.digest;
    });
    const tools = request.tools === undefined ? undefined : this.#putMessage(request.tools, seen).digest;
    const { value, text } = this.#clean(request.parameters, seen);
    const { media, redacted } = seen;
    return { messages, tools, media, parameters: value as JsonObject, parametersText: text, tree, redacted };
  }

  /** Puts the whole call; durable once `commit` resolves. */
  record(call: CallRecord): void {
    const { rollout, index, prepared, reply, target, outcome } = call;
    const seen: Seen = { media: [...prepared.media], redacted: prepared.redacted };
    const replies = reply.messages.map((message) => this.#putMessage(message, seen));
    const costUsd = costOf(reply, target);
    const digest = this.#putCall(call, { replies, media: seen.media, costUsd });
    // The ids of a text spell the text: what is redacted there must not come back here.
    const facts = seen.redacted || outcome !== "answered" ? undefined : tokenFacts(reply, target);
    const tokens = facts === undefined ? undefined : putTokens(this.#store, rollout, facts);
    for (const received of call.place.received) rollout.mark(received, "sent");
    const deliveries = rollout.pendingDeliveries;
    rollout.pendingDeliveries = [];
    putCalled(this.#store, rollout, {
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
    rollout.addCall({
      index,
      digest,
      outcome,
      model: target.model,
      parent: call.place.parent,
      finishReason: reply.finishReason,
      wantsTools: replies.some((each) => each.wantsTools),
      startedAtMs: call.startedAtMs,
      firstByteMs: call.firstByteMs,
      durationMs: call.durationMs,
      delivery: outcome === "disconnected" ? "aborted" : "unknown",
    });
    rollout.sampling ??= samplingOf(prepared.parameters);
    rollout.addUsage(reply.usage, costUsd);
    for (const step of call.steps) rollout.steps.push({ family: call.stepFamily!, step });
    if (facts !== undefined) rollout.addTokens(index, facts);
    if (outcome === "answered")
      addReply(rollout, { index, dialect: call.dialect, keys: replies.map(({ key }) => key) });
  }

  commit(): Promise<void> {
    return this.#store.flush();
  }

  /** The canonical form, written out: fields in order, and nothing in it that needs another look. */
  #putCall(
    call: CallRecord,
    parts: { replies: readonly Stored[]; media: readonly Digest[]; costUsd: number | undefined },
  ): Digest {
    const { prepared, reply, target, body, sent } = call;
    const { finishReason, usage } = reply;
    const media = [...new Set(parts.media)];
    let text = parts.costUsd === undefined ? "{" : `{"costUsd":${number(parts.costUsd)},`;
    text += `"dialect":"${call.dialect}"`;
    if (media.length > 0) text += `,"media":${digests(media)}`;
    text += `,"model":${target.modelText},"request":{"bodyDigest":"${digestBody(body)}","messages":${digests(prepared.messages)}`;
    text += `,"parameters":${prepared.parametersText}`;
    if (sent !== undefined) text += `,"sentDigest":"${digestBody(sent)}"`;
    if (prepared.tools !== undefined) text += `,"tools":"${prepared.tools}"`;
    text += `},"response":{`;
    if (call.replyDigest !== undefined) text += `"bodyDigest":"${call.replyDigest}",`;
    if (finishReason !== undefined) text += `"finishReason":${JSON.stringify(finishReason.toWellFormed())},`;
    text += `"messages":${digests(parts.replies.map(({ digest }) => digest))},"status":${call.status}}`;
    if (target.revisionText !== undefined) text += `,"revision":${target.revisionText}`;
    text += `,"schema":"${Call.kind}"`;
    if (target.tokenizer !== undefined) text += `,"tokenizer":"${target.tokenizer}"`;
    if (usage !== undefined) text += `,"usage":${usageText(usage)}`;
    return this.#store.put(Call.kind, Buffer.from(`${text}}`));
  }

  #putMessage(message: unknown, seen: Seen): Stored {
    const extracted = extractMedia(message);
    for (const { digest, bytes } of extracted.media) {
      this.#store.put(MEDIA_KIND, bytes);
      seen.media.push(digest);
    }
    const { value, text } = this.#clean(extracted.message, seen);
    const known = this.#stored.get(text);
    if (known !== undefined) return known;
    const stored = {
      digest: this.#store.put(MESSAGE_KIND, Buffer.from(text)),
      key: messageKey(value),
      isReply: isReply(value),
      wantsTools: wantsTools(value),
    };
    this.#remember(text, stored);
    return stored;
  }

  /** Prompts repeat: the system prompt in every call, the history in every turn. Known text is not hashed again. */
  #remember(text: string, stored: Stored): void {
    this.#storedChars += text.length;
    if (this.#storedChars > REMEMBERED_CHARS) {
      this.#stored.clear();
      this.#storedChars = text.length;
    }
    this.#stored.set(text, stored);
  }

  /** The value as it may be recorded: without secrets, and such that it has a canonical form. */
  #clean(given: unknown, seen: Seen): { value: unknown; text: string } {
    let value = this.#redact === undefined ? given : this.#redact(given as Json);
    if (this.#redactText !== undefined) value = redactStrings(value, this.#redactText);
    if (value !== given) seen.redacted = true;
    try {
      return { value, text: canonicalize(value) };
    } catch (error) {
      if (!isRollbookError(error)) throw error;
      const repaired = repair(value, 0);
      return { value: repaired, text: canonicalize(repaired) };
    }
  }
}

export function digestBody(bytes: Uint8Array): Digest {
  return digestTagged(Buffer.concat([BODY_PREFIX, bytes]));
}

function digests(list: readonly Digest[]): string {
  return list.length === 0 ? "[]" : `["${list.join('","')}"]`;
}

function usageText({
  cachedTokens,
  completionTokens,
  promptTokens,
}: NonNullable<ReplyFacts["usage"]>): string {
  const cached = cachedTokens === undefined ? "" : `"cachedTokens":${cachedTokens},`;
  return `{${cached}"completionTokens":${completionTokens},"promptTokens":${promptTokens}}`;
}

/** As canonical JSON writes it. */
function number(value: number): string {
  return canonicalize(value);
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
