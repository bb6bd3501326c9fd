/** Sends spans in batches, in the background. In: spans, one at a time. Out: POST requests, and counts of exported
 *  and dropped spans. The queue is bounded: while the receiver is down, the exporter keeps spans up to the bound and
 *  drops the rest. Adding a span never throws and never waits. */
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
  /** Maximum number of queued spans. */
  readonly queued: number;
  /** Maximum number of spans in one request. */
  readonly batch: number;
  /** Milliseconds before a partial batch is sent, and before the first retry. */
  readonly delayMs: number;
  /** Maximum milliseconds between two retries. */
  readonly retryMs: number;
  /** Timeout of one request, in milliseconds. */
  readonly timeoutMs: number;
}

const LIMITS: ExportLimits = { queued: 4096, batch: 256, delayMs: 1000, retryMs: 30_000, timeoutMs: 10_000 };
/** Statuses that OTLP declares retryable. A request with any other error status would fail again. */
const RETRIED: ReadonlySet<number> = new Set([429, 502, 503, 504]);
/** Read limit of a reply. A receiver's answer to a batch has a few hundred bytes. */
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
  /** Consecutive requests that must be retried. */
  #failures = 0;
  /** Reason of the last refused batch. Undefined if the receiver accepted the last batch. */
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

  /** Sends the queued spans within that time. Drops and counts the rest. */
  async close(withinMs: number): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    const late = setTimeout(() => this.#stop.abort(), withinMs);
    await this.#sending;
    // One failure ends the loop: closing does not wait for a receiver that is down.
    for (let left = Infinity; this.#queue.length > 0 && this.#queue.length < left; ) {
      left = this.#queue.length;
      await this.#send();
    }
    clearTimeout(late);
    this.dropped += this.#queue.splice(0).length;
    if (this.dropped > 0)
      this.#options.log(`OpenTelemetry: ${this.dropped} spans were dropped since the start`);
  }

  /** Sends a full batch at once, unless the last request failed. */
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
      // One log line per outage.
      if (this.#failures++ === 0) this.#options.log(`OpenTelemetry: ${this.#place} takes no spans: ${why}`);
      return;
    }
    this.#failures = 0;
    this.#queue.splice(0, spans.length);
    const taken = Math.max(0, spans.length - rejected);
    this.exported += kind === "done" ? taken : 0;
    this.dropped += kind === "done" ? spans.length - taken : spans.length;
    const refusal = kind === "refused" || rejected > 0 ? why : undefined;
    // One log line per reason: a receiver that refuses every batch would fill the log.
    if (refusal !== undefined && refusal !== this.#refusal)
      this.#options.log(`OpenTelemetry: ${this.#place} refused spans: ${why}`);
    this.#refusal = refusal;
  }

  async #post(body: string): Promise<SendResult> {
    const { url, headers } = this.#options;
    const signal = AbortSignal.any([AbortSignal.timeout(this.#limits.timeoutMs), this.#stop.signal]);
    try {
      // Headers may hold a key. Redirects are errors, so headers reach only the configured address.
      const response = await fetch(url, { method: "POST", headers, body, signal, redirect: "error" });
      const reply = await beginningOf(response);
      const why = `status ${response.status}`;
      if (response.ok) return { kind: "done", why, rejected: rejectedOf(reply) };
      return { kind: RETRIED.has(response.status) ? "later" : "refused", why, rejected: 0 };
    } catch (error) {
      // The error of fetch has the reason in its cause.
      const cause = error instanceof Error ? error.cause : undefined;
      return { kind: "later", why: reasonOf(cause ?? error), rejected: 0 };
    }
  }

  /** The receiver's address without path and query, which may hold a key. */
  get #place(): string {
    return this.#options.url.origin;
  }
}

async function beginningOf({ body }: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  // `break` cancels the rest of the body.
  for await (const chunk of body ?? []) {
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes >= REPLY_BYTES) break;
  }
  return Buffer.concat(chunks).toString();
}

/** Number of spans that the receiver rejected from an accepted batch. */
function rejectedOf(reply: string): number {
  try {
    const { partialSuccess } = JSON.parse(reply) as { partialSuccess?: { rejectedSpans?: string | number } };
    const rejected = Number(partialSuccess?.rejectedSpans ?? 0);
    return Number.isSafeInteger(rejected) && rejected > 0 ? rejected : 0;
  } catch {
    // An accepted request may have an empty reply or a reply in protobuf.
    return 0;
  }
}
