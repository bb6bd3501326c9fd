/** Reads a reply while it passes: collects the facts to record, and holds back the bytes that must wait for the
 *  record. In: chunks. Out: bytes to pass on at once, held bytes, and at the end the facts. Does not wait and does
 *  not write. */
import { type Dialect, isObject, type ReplyFacts, type TokenUsage, tryParse } from "../dialects/index.ts";
import { ChunkList } from "./chunk-list.ts";
import { EventTexts } from "./event-texts.ts";
import { readUsage } from "./reply-usage.ts";
import { SseParser } from "./sse.ts";

export interface ReadReply {
  readonly reply: ReplyFacts;
  /** True if the reply has the form that its protocol demands. */
  readonly complete: boolean;
  /** True if a part was not valid JSON. Only the bytes tell its content. */
  readonly hasUnread: boolean;
}

export interface ReplyReader {
  readonly form: "json" | "sse";
  /** The bytes of this and earlier chunks that may be passed on now. */
  push(chunk: Buffer): Buffer | undefined;
  /** All received chunks. */
  readonly chunks: readonly Buffer[];
  readonly bytes: number;
  /** The held bytes, to release after the record. */
  held(): Buffer | undefined;
  /** Facts that the call needs at once. A JSON reply counts as complete here; `finish` checks it. */
  peek(): { readonly usage: TokenUsage | undefined; readonly complete: boolean };
  finish(): ReadReply;
  /** Texts that the events of a stream form together. Empty if the reply is one text. */
  joinedTexts(): Iterable<string>;
}

/** `joinsTexts` enables `joinedTexts`. */
export function readerOf(form: "json" | "sse", dialect: Dialect, { joinsTexts = false } = {}): ReplyReader {
  return form === "sse" ? new SseReader(dialect, joinsTexts) : new JsonReader(dialect);
}

/** Text that is not JSON is recorded as it is, up to this length. */
const MAX_UNPARSED = 64 * 1024;
/** A longer reply in one piece is not parsed. */
const MAX_READ_BYTES = 64 * 1024 * 1024;

/** A reply in one piece. Its last chunk is held. */
class JsonReader implements ReplyReader {
  readonly form = "json";
  readonly #chunks = new ChunkList();
  readonly chunks = this.#chunks.list;
  bytes = 0;
  readonly #dialect: Dialect;
  #last: Buffer | undefined;

  constructor(dialect: Dialect) {
    this.#dialect = dialect;
  }

  push(chunk: Buffer): Buffer | undefined {
    const before = this.#last;
    this.#last = chunk;
    this.#chunks.push(chunk);
    this.bytes += chunk.length;
    return before;
  }

  held(): Buffer | undefined {
    return this.#last;
  }

  peek() {
    const isRead = this.bytes <= MAX_READ_BYTES;
    return { usage: isRead ? readUsage(this.#chunks.whole(), this.#dialect) : undefined, complete: true };
  }

  finish(): ReadReply {
    // A longer reply is not parsed: its bytes are the record.
    if (this.bytes > MAX_READ_BYTES) return { reply: { messages: [] }, complete: true, hasUnread: true };
    const text = this.#chunks.whole().toString();
    const body = tryParse(text);
    const isWhole = isObject(body);
    const unparsed = { messages: text === "" ? [] : [{ unparsed: text.slice(0, MAX_UNPARSED) }] };
    const facts = isWhole ? this.#dialect.readReply(body) : unparsed;
    // An error is recorded as the upstream sent it.
    const reply =
      isWhole && facts.messages.length === 0 && "error" in body ? { ...facts, messages: [body] } : facts;
    return { reply, complete: isWhole, hasUnread: !isWhole };
  }

  joinedTexts(): Iterable<string> {
    return [];
  }
}

/** A stream of events. All bytes pass at once, except the last event and anything after it, which are held. */
class SseReader implements ReplyReader {
  readonly form = "sse";
  readonly #chunks = new ChunkList();
  readonly chunks = this.#chunks.list;
  bytes = 0;
  readonly #accumulator;
  readonly #parser: SseParser;
  readonly #heldChunks: Buffer[] = [];
  #lastAt: number | undefined;
  #finished: ReadReply | undefined;
  #hasUnread = false;
  readonly #texts: EventTexts | undefined;

  constructor(dialect: Dialect, joinsTexts: boolean) {
    const accumulator = dialect.accumulate();
    const texts = joinsTexts ? new EventTexts() : undefined;
    this.#texts = texts;
    this.#accumulator = accumulator;
    this.#parser = new SseParser(({ type, data, start }) => {
      const value = tryParse(data);
      texts?.add(value);
      const isLast = accumulator.push(type, value, data);
      if (isLast) this.#lastAt ??= start;
      else if (value === undefined) this.#hasUnread = true;
    });
  }

  push(chunk: Buffer): Buffer | undefined {
    this.bytes += chunk.length;
    this.#chunks.push(chunk);
    if (this.#lastAt !== undefined) {
      this.#heldChunks.push(chunk);
      return undefined;
    }
    if (!this.#parser.push(chunk)) this.#hasUnread = true;
    if (this.#lastAt === undefined) return chunk;
    this.#heldChunks.push(chunk.subarray(this.#lastAt));
    return this.#lastAt === 0 ? undefined : chunk.subarray(0, this.#lastAt);
  }

  held(): Buffer | undefined {
    return this.#heldChunks.length === 0 ? undefined : Buffer.concat(this.#heldChunks);
  }

  peek() {
    const { reply, complete } = this.finish();
    return { usage: reply.usage, complete };
  }

  finish(): ReadReply {
    this.#finished ??= this.#accumulate();
    return this.#finished;
  }

  /** Joined texts of the events, and the messages assembled from them. */
  *joinedTexts(): Iterable<string> {
    if (this.#texts === undefined) return;
    yield* this.#texts.texts();
    const { messages, finishReason = "" } = this.finish().reply;
    yield JSON.stringify(messages);
    yield finishReason;
  }

  #accumulate(): ReadReply {
    this.#parser.end();
    return { ...this.#accumulator.finish(), hasUnread: this.#hasUnread };
  }
}
