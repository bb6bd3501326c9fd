/** Writes calls into the book when their rollout is sealed. In: calls from the journal, in order. Out: message,
 *  media and call blobs, and the rollout built from them. The order of the blobs leaves no dangling reference after
 *  a crash. Runs after the calls: only close requests wait for it. */
import { isUtf8 } from "node:buffer";
import { canonicalize, type Digest, isRollbookError } from "../../../base/index.ts";
import { BODY_KIND, Call, MEDIA_KIND, MESSAGE_KIND, RolloutEvent } from "../../../contract/index.ts";
import type { BlobStore } from "../../../store/index.ts";
import {
  type Dialect,
  define,
  dialectNamed,
  finishKind,
  isObject,
  type JsonObject,
  nestsDeeper,
  type ReplyFacts,
  type RequestFacts,
  samplingOf,
} from "../dialects/index.ts";
import { type CalledEntry, calledEvent, eventBytes, replyOf } from "../journal/index.ts";
import type { TargetFacts } from "../upstream/index.ts";
import { digestBody, extractMedia, parseBody, type ReadReply, spliceFields } from "../wire/index.ts";
import type { Drift, TreeMessage } from "./message-tree.ts";
import type { RolloutBuilder, TokenFacts } from "./rollout-builder.ts";
import { isReply, messageKey } from "./same-message.ts";

/** Characters of message text in the cache of stored messages. */
const REMEMBERED_CHARS = 4 * 1024 * 1024;

/** A message in the book, with its facts for the tree. */
interface Stored extends TreeMessage {
  readonly digest: Digest;
  /** True if the blob has exactly the content of the message. */
  readonly isExact: boolean;
}

/** The messages of the request, or of the reply. */
class MessageGroup {
  /** True if the record has all of the messages unchanged. */
  isExact = true;
  readonly #put: (value: unknown) => Stored;

  constructor(put: (value: unknown) => Stored) {
    this.#put = put;
  }

  put(value: unknown): Stored {
    const stored = this.#put(value);
    if (!stored.isExact) this.isExact = false;
    return stored;
  }

  putAll(values: readonly unknown[], most: number): Stored[] {
    if (values.length > most) this.isExact = false;
    return values.slice(0, most).map((each) => this.put(each));
  }
}

/** A call as it is recorded: request and reply, by digest. */
interface Halves {
  readonly messages: readonly Stored[];
  readonly tools: Digest | undefined;
  readonly parametersText: string;
  readonly replies: readonly Stored[];
  readonly media: readonly Digest[];
  readonly reply: ReplyFacts;
  /** Bodies stored whole, because the messages do not represent them exactly. */
  readonly bodies: readonly Digest[];
}

/** The readable facts of a call. */
interface ReadCall extends ReadReply {
  readonly request: RequestFacts;
}

/** Limits of a record. The bodies hold the rest. */
const MOST = { asked: 100_000, answered: 1024, media: 10_000 };

export class CallSealer {
  readonly #store: Pick<BlobStore, "put">;
  readonly #stored = new Map<string, Stored>();
  #storedChars = 0;

  constructor(store: Pick<BlobStore, "put">) {
    this.#store = store;
  }

  /** Puts one call and adds it to the builder, with any content: parts that are not messages are stored as
   *  bytes. `isRaw` reads nothing of the call. Returns the drift of its prompt from earlier ones. */
  add(builder: RolloutBuilder, entry: CalledEntry, { isRaw = false } = {}): Drift {
    const { index, target } = entry;
    const dialect = dialectNamed(entry.dialect);
    const { request, reply, complete, hasUnread } = isRaw ? UNREAD : readCall(entry, dialect);
    const outcome = entry.outcome === "answered" && !complete ? "cut" : entry.outcome;
    const media = entry.media.map((bytes) => this.#store.put(MEDIA_KIND, bytes));
    const asked = new MessageGroup((value) => this.#putMessage(value, media));
    const messages = asked.putAll(request.messages, MOST.asked);
    const tools = request.tools === undefined ? undefined : asked.put(request.tools).digest;
    const parameters = cleaned(request.parameters);
    const answered = new MessageGroup((value) => this.#putMessage(value, media));
    const replies = answered.putAll(reply.messages, MOST.answered);
    const bodies = this.#putBodies(entry, {
      request:
        request === UNREAD.request || !asked.isExact || !parameters.isExact || media.length > MOST.media,
      reply: hasUnread || !answered.isExact || media.length > MOST.media,
    });
    const halves = { messages, tools, parametersText: parameters.text, replies, media, reply, bodies };
    const digest = this.#putCall(entry, halves);
    const place = builder.tree.ask(index, messages);
    const event = calledEvent({ ...entry, outcome }, { call: digest, parent: place.parent });
    const told = this.#store.put(RolloutEvent.kind, eventBytes(entry.rollout, event));
    builder.signed.push(told, ...media, ...bodies);
    builder.calls.set(index, {
      ...{ index, digest, outcome, model: target.model, parent: place.parent },
      finish: finishKind(reply.finishReason, dialect),
      wantsTools: reply.messages.some(dialect.wantsTools),
      startedAtMs: entry.startedAtMs,
      firstByteMs: entry.firstByteMs,
      durationMs: entry.durationMs,
      delivery: outcome === "disconnected" ? "aborted" : "unknown",
    });
    for (const received of place.received) builder.mark(received, "sent");
    builder.sampling ??= samplingOf(parameters.value as JsonObject, dialect);
    for (const step of entry.steps) builder.steps.push({ family: entry.stepFamily!, step });
    if (outcome !== "answered") return place.drift;
    const tokens = tokenFacts(reply, target);
    if (tokens !== undefined) builder.addTokens(index, tokens);
    const keys = replies.map(({ key }) => key);
    if (dialect.replyMessages === "parts") builder.tree.reply(index, keys);
    else for (const key of keys) builder.tree.reply(index, [key]);
    return place.drift;
  }

  /** Writes the canonical form directly: fields in order, with values that need no further check. */
  #putCall(entry: CalledEntry, halves: Halves): Digest {
    const { target, costUsd, replyForm } = entry;
    const { finishReason, usage } = halves.reply;
    const media = [...new Set(halves.media)].slice(0, MOST.media);
    const { bodies } = halves;
    const bodyDigest = entry.bodyDigest ?? digestBody(entry.request);
    const replyDigest = entry.replyDigest ?? (replyForm === "none" ? undefined : digestBody(entry.reply));
    let text = bodies.length === 0 ? "{" : `{"bodies":${digests(bodies)},`;
    if (costUsd !== undefined) text += `"costUsd":${canonicalize(costUsd)},`;
    text += `"dialect":"${entry.dialect}"`;
    if (media.length > 0) text += `,"media":${digests(media)}`;
    text += `,"model":${canonicalize(target.model)},"request":{"bodyDigest":"${bodyDigest}"`;
    text += `,"messages":${digests(halves.messages.map(({ digest }) => digest))}`;
    text += `,"parameters":${halves.parametersText}`;
    const sentDigest = sentDigestOf(entry);
    if (sentDigest !== undefined) text += `,"sentDigest":"${sentDigest}"`;
    if (halves.tools !== undefined) text += `,"tools":"${halves.tools}"`;
    text += `},"response":{`;
    if (replyDigest !== undefined) text += `"bodyDigest":"${replyDigest}",`;
    if (finishReason !== undefined) text += `"finishReason":${JSON.stringify(finishReason.toWellFormed())},`;
    text += `"messages":${digests(halves.replies.map(({ digest }) => digest))},"status":${entry.status}}`;
    if (target.revision !== undefined)
      text += `,"revision":${canonicalize({ family: target.family, ...target.revision })}`;
    text += `,"schema":"${Call.kind}"`;
    if (target.tokenizer !== undefined) text += `,"tokenizer":"${target.tokenizer}"`;
    if (usage !== undefined) text += `,"usage":${canonicalize(usage)}`;
    return this.#store.put(Call.kind, Buffer.from(`${text}}`));
  }

  /** Stores bytes from the journal. The journal has none if something was redacted. */
  #putBodies(
    { requestForm, replyForm, request, reply }: CalledEntry,
    wanted: { readonly request: boolean; readonly reply: boolean },
  ): Digest[] {
    const bodies = new Set<Digest>();
    if (wanted.request && requestForm === "body") bodies.add(this.#store.put(BODY_KIND, request));
    if (wanted.reply && (replyForm === "json" || replyForm === "sse"))
      bodies.add(this.#store.put(BODY_KIND, reply));
    return [...bodies];
  }

  #putMessage(message: unknown, media: Digest[]): Stored {
    const extracted = extractMedia(message);
    for (const { digest, bytes } of extracted.media) {
      this.#store.put(MEDIA_KIND, bytes);
      media.push(digest);
    }
    const { value, text, isExact } = cleaned(extracted.message);
    const known = this.#stored.get(text);
    if (known?.isExact === isExact) return known;
    const stored = {
      digest: this.#store.put(MESSAGE_KIND, Buffer.from(text)),
      key: messageKey(value),
      isReply: isReply(value),
      isExact,
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
}

function sentDigestOf({
  sentDigest,
  isRenamed,
  request,
  target: { model },
}: CalledEntry): Digest | undefined {
  if (isRenamed !== true) return sentDigest;
  return digestBody(Buffer.from(spliceFields(request.toString(), { model })));
}

/** Stands for a request or reply that could not be read, or was not to be read. */
const UNREAD: ReadCall = {
  request: { model: "", stream: false, maxTokens: undefined, messages: [], parameters: {} },
  reply: { messages: [] },
  complete: true,
  hasUnread: true,
};

/** Never fails: the bytes represent unreadable parts. */
function readCall(entry: CalledEntry, dialect: Dialect): ReadCall {
  const request = attempt(() => requestOf(entry, dialect)) ?? UNREAD.request;
  const reply = attempt(() => replyOf(entry, dialect)) ?? UNREAD;
  return { ...reply, request, hasUnread: reply.hasUnread || !isUtf8(entry.reply) };
}

/** Undefined if the content is at fault: reading is a pure function of the bytes. */
function attempt<T>(read: () => T | undefined): T | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}

function requestOf({ requestForm, request }: CalledEntry, dialect: Dialect): RequestFacts | undefined {
  switch (requestForm) {
    case "body":
      return dialect.readRequest(parseBody(request));
    case "facts":
      return JSON.parse(request.toString()) as RequestFacts;
    default:
      return requestForm satisfies never;
  }
}

function tokenFacts({ tokens }: ReplyFacts, target: TargetFacts): TokenFacts | undefined {
  const { logprobKind, family, revision, tokenizer } = target;
  if (tokens === undefined || logprobKind === undefined || family === undefined || revision === undefined)
    return undefined;
  return { ...tokens, family, revision, logprobKind, tokenizer };
}

function digests(list: readonly Digest[]): string {
  return list.length === 0 ? "[]" : `["${list.join('","')}"]`;
}

/** The value in a form that has a canonical text. `isExact` is true if the value was unchanged. */
function cleaned(value: unknown): { value: unknown; text: string; isExact: boolean } {
  try {
    const text = canonicalize(value);
    if (!nestsDeeper(text, MAX_RECORDED_DEPTH)) return { value, text, isExact: true };
  } catch (error) {
    if (!isRollbookError(error)) throw error;
  }
  const repaired = repair(value, 0);
  return { value: repaired, text: canonicalize(repaired), isExact: false };
}

/** Models and clients do send lone surrogates, 1e999 and deep nesting: messages keep the part that JSON can carry.
 *  Records hold messages and parameters inside other objects, and may be 128 levels deep in total. */
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
