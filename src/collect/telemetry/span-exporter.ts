/** Sends spans in batches, in the background. In: spans, one at a time. Out: POST requests, and counts of what was taken and
 *  what was dropped. The queue is bounded: while the receiver is down, spans are kept up to the bound and then dropped.
 *  Adding a span never throws and never waits. */
import { reasonOf } from "../../base/index.ts";
import { type OtlpAttribute, type OtlpSpan, tracesRequest } from "./otlp-span.ts";

interface SpanExporterOptions {
  readonly url: URL;
  readonly headers: Headers;
  readonly resource: readonly OtlpAttribute[];
  readonly log: (line: string) => void;
  readonly limits?: Partial<ExportLimits> | undefined;
}

export interface ExportLimits {
  /** Spans that wait, at most. */
  readonly queued: number;
  /** Spans of one request. */
  readonly batch: number;
  /** Milliseconds before a batch that is not full goes out, and before the first retry. */
  readonly delayMs: number;
  /** Milliseconds between two retries, at most. */
  readonly retryMs: number;
  /** Milliseconds for one request. */
  readonly timeoutMs: number;
}

const LIMITS: ExportLimits = { queued: 4096, batch: 256, delayMs: 1000, retryMs: 30_000, timeoutMs: 10_000 };
/** What OTLP lets a client send again; everything else that fails would fail again. */
const RETRIED: ReadonlySet<number> = new Set([429, 502, 503, 504]);
/** More of a reply is not read. What a receiver says of a batch is a few hundred bytes. */
const REPLY_BYTES = 64 * 1024;

type SendResult = {
  readonly kind: "done" | "refused" | "later";
  readonly why: string;
  readonly rejected: number;
};

export class SpanExporter {
  readonly #options: SpanExporterOptions;
  readonly #limits: ExportLimits;
  readonly #queue: OtlpSpan[] = [];
  readonly #stop = new AbortController();
  #timer: NodeJS.Timeout | undefined;
  #sending: Promise<void> | undefined;
  /** Requests in a row that have to be sent again. */
  #failures = 0;
  /** Why the last batch was refused. Undefined: it was taken. */
  #refusal: string | undefined;
  #isClosed = false;
  exported = 0;
  dropped = 0;

  constructor(options: SpanExporterOptions) {
    this.#options = options;
    this.#limits = { ...LIMITS, ...options.limits };
  }

  get queued(): number {
    return this.#queue.length;
  }

  add(span: OtlpSpan): void {
    if (this.#isClosed || this.#queue.length >= this.#limits.queued) {
      this.dropped++;
      return;
    }
    this.#queue.push(span);
    this.#plan();
  }

  /** Sends what waits, within that time; the rest is dropped and counted. */
  async close(withinMs: number): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    const late = setTimeout(() => this.#stop.abort(), withinMs);
    await this.#sending;
    // One failure is enough: a receiver that is down is not waited for.
    for (let left = Infinity; this.#queue.length > 0 && this.#queue.length < left; ) {
      left = this.#queue.length;
      await this.#send();
    }
    clearTimeout(late);
    this.dropped += this.#queue.splice(0).length;
    if (this.dropped > 0)
      this.#options.log(`OpenTelemetry: ${this.dropped} spans were dropped since the start`);
  }

  /** A full batch goes out at once, unless the receiver failed last time. */
  #plan(): void {
    if (this.#sending !== undefined || this.#isClosed || this.#queue.length === 0) return;
    const { batch, delayMs, retryMs } = this.#limits;
    const isFull = this.#queue.length >= batch && this.#failures === 0;
    if (this.#timer !== undefined && !isFull) return;
    clearTimeout(this.#timer);
    const waitMs = isFull ? 0 : Math.min(retryMs, delayMs * 2 ** Math.min(this.#failures, 16));
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#sending = this.#send().finally(() => {
        this.#sending = undefined;
        this.#plan();
      });
    }, waitMs).unref();
  }

  async #send(): Promise<void> {
    const spans = this.#queue.slice(0, this.#limits.batch);
    const { kind, why, rejected } = await this.#post(tracesRequest(this.#options.resource, spans));
    if (kind === "later") {
      // Told once per outage.
      if (this.#failures++ === 0) this.#options.log(`OpenTelemetry: ${this.#place} takes no spans: ${why}`);
      return;
    }
    this.#failures = 0;
    this.#queue.splice(0, spans.length);
    const taken = Math.max(0, spans.length - rejected);
    this.exported += kind === "done" ? taken : 0;
    this.dropped += kind === "done" ? spans.length - taken : spans.length;
    const refusal = kind === "refused" || rejected > 0 ? why : undefined;
    // Told once: a receiver that refuses every batch would fill the log.
    if (refusal !== undefined && refusal !== this.#refusal)
      this.#options.log(`OpenTelemetry: ${this.#place} refused spans: ${why}`);
    this.#refusal = refusal;
  }

  async #post(body: string): Promise<SendResult> {
    const { url, headers } = this.#options;
    const signal = AbortSignal.any([AbortSignal.timeout(this.#limits.timeoutMs), this.#stop.signal]);
    try {
      // Headers may hold a key: they go to the configured address and to no other.
      const response = await fetch(url, { method: "POST", headers, body, signal, redirect: "error" });
      const reply = await beginningOf(response);
      const why = `status ${response.status}`;
      if (response.ok) return { kind: "done", why, rejected: rejectedOf(reply) };
      return { kind: RETRIED.has(response.status) ? "later" : "refused", why, rejected: 0 };
    } catch (error) {
      // fetch says that it failed; its cause says why.
      const cause = error instanceof Error ? error.cause : undefined;
      return { kind: "later", why: reasonOf(cause ?? error), rejected: 0 };
    }
  }

  /** Without path and query, which may hold a key. */
  get #place(): string {
    return this.#options.url.origin;
  }
}

async function beginningOf({ body }: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  // Leaving the loop early cancels the rest.
  for await (const chunk of body ?? []) {
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes >= REPLY_BYTES) break;
  }
  return Buffer.concat(chunks).toString();
}

/** What a receiver says it left out of a batch that it took. */
function rejectedOf(reply: string): number {
  try {
    const { partialSuccess } = JSON.parse(reply) as { partialSuccess?: { rejectedSpans?: string | number } };
    const rejected = Number(partialSuccess?.rejectedSpans ?? 0);
    return Number.isSafeInteger(rejected) && rejected > 0 ? rejected : 0;
  } catch {
    // An empty reply, or one in protobuf, to a request that was taken.
    return 0;
  }
}
