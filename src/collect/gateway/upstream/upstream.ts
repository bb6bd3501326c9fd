/** One upstream: its connections, its key, its retries. In: a request. Out: the reply, chunk by chunk, to a
 *  receiver. Retries with jitter after 408, 429, 5xx and failed connections, as long as nothing has reached the
 *  receiver. Does not look into bodies. */
import { type Dispatcher, Pool } from "undici";
import { type Clock, type Rng, RollbookError, reasonOf } from "../../../base/index.ts";
import { isProviderFault } from "../../gateway-replies.ts";
import type { UpstreamConfig } from "../config.ts";
import { Breaker } from "./breaker.ts";
import { findLocal, LocalDispatcher, type LocalUpstream, localName } from "./local-upstream.ts";

export type ReplyHeaders = Readonly<Record<string, string | string[] | undefined>>;

/** Receives the reply in this order: start, data …, then exactly one of end or error. */
export interface Receiver {
  onStart(status: number, headers: ReplyHeaders): void;
  /** Returns false to pause until `resume`. */
  onData(chunk: Buffer): boolean;
  onEnd(): void;
  onError(error: RollbookError): void;
}

export interface Exchange {
  resume(): void;
  /** Ends the exchange. The receiver gets no further callback. */
  abort(): void;
}

interface UpstreamRequest {
  readonly method: "GET" | "POST";
  /** Path below the base URL, for example `/chat/completions`. */
  readonly path: string;
  /** Names and values alternately. The upstream adds its own headers. */
  readonly headers: string[];
  readonly body?: Buffer;
}

/** The part of a pool that an upstream uses: undici's pool, or one that calls a function in this process. */
type Connections = Pick<Pool, "dispatch"> & { destroy(): Promise<void> };

export class Upstream {
  readonly breaker: Breaker;
  readonly #prefix: string;
  readonly #pool: Connections;
  readonly #fixed: readonly string[];
  readonly #attempts: AttemptRules;

  constructor(
    name: string,
    config: UpstreamConfig,
    options: {
      key: string | undefined;
      clock: Clock;
      rng: Rng;
      onRetry?: () => void;
      local?: Readonly<Record<string, LocalUpstream>> | undefined;
    },
  ) {
    this.breaker = new Breaker({ clock: options.clock, ...config.breaker });
    this.#attempts = {
      ...{ name, breaker: this.breaker, retries: config.retries, url: withoutUser(config.baseUrl) },
      delayMs: (tries, retryAfter) => delayMs(config, options.rng, { tries, retryAfter }),
      onRetry: options.onRetry ?? (() => {}),
    };
    this.#fixed = fixedHeaders(config, options.key);
    const local = localName(config.baseUrl);
    if (local !== undefined) {
      this.#prefix = "/v1";
      this.#pool = new LocalDispatcher(findLocal(name, local, options.local), config);
      return;
    }
    const url = new URL(config.baseUrl);
    this.#prefix = url.pathname === "/" ? "/v1" : url.pathname.replace(/\/+$/, "");
    this.#pool = new Pool(url.origin, {
      connections: config.connections,
      pipelining: 1,
      connect: { timeout: config.connectTimeoutMs },
      headersTimeout: config.timeoutMs,
      bodyTimeout: config.timeoutMs,
    });
  }

  send(request: UpstreamRequest, receiver: Receiver): Exchange {
    const { method, path, headers, body = null } = request;
    for (const each of this.#fixed) headers.push(each);
    const attempt = new Attempt(
      { pool: this.#pool, options: { method, path: this.#prefix + path, headers, body }, receiver },
      this.#attempts,
    );
    attempt.start();
    return attempt;
  }

  close(): Promise<void> {
    return this.#pool.destroy();
  }
}

/** Full jitter over an exponential span. A Retry-After of the server replaces it, plus a quarter of the
 *  jitter, up to the maximum. */
function delayMs(
  { retryBaseMs, retryMaxMs }: UpstreamConfig,
  rng: Rng,
  { tries, retryAfter }: { tries: number; retryAfter: string | undefined },
): number {
  const span = Math.min(retryMaxMs, retryBaseMs * 2 ** tries);
  const asked = retryAfter === undefined ? Number.NaN : Number(retryAfter) * 1000;
  const jittered = rng.float() * span;
  return asked >= 0 ? Math.min(retryMaxMs, asked + jittered / 4) : jittered;
}

/** Settings that all attempts at an upstream share. */
interface AttemptRules {
  readonly breaker: Breaker;
  readonly retries: number;
  delayMs(tries: number, retryAfter: string | undefined): number;
  onRetry(): void;
  readonly name: string;
  readonly url: string;
}

interface Sending {
  readonly pool: Connections;
  readonly options: Dispatcher.DispatchOptions;
  readonly receiver: Receiver;
}

/** Runs one request through its attempts, and is the handler of each attempt. */
class Attempt implements Exchange, Dispatcher.DispatchHandler {
  readonly #sending: Sending;
  readonly #receiver: Receiver;
  readonly #deps: AttemptRules;
  #controller: Dispatcher.DispatchController | undefined;
  #timer: NodeJS.Timeout | undefined;
  #tries = 0;
  #passing = false;
  #aborted = false;

  constructor(sending: Sending, rules: AttemptRules) {
    this.#sending = sending;
    this.#receiver = sending.receiver;
    this.#deps = rules;
  }

  start(): void {
    const waitMs = this.#deps.breaker.waitMs(this);
    if (waitMs > 0) {
      // Deferred, because the caller does not have the exchange yet.
      queueMicrotask(() => {
        if (!this.#aborted) this.#receiver.onError(breakerOpen(this.#deps, waitMs));
      });
      return;
    }
    this.#sending.pool.dispatch(this.#sending.options, this);
  }

  resume(): void {
    this.#controller?.resume();
  }

  abort(): void {
    if (this.#aborted) return;
    this.#aborted = true;
    this.#deps.breaker.undecided(this);
    clearTimeout(this.#timer);
    this.#controller?.abort(new Error("the client left"));
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#aborted) controller.abort(new Error("the client left"));
  }

  onResponseStart(_controller: unknown, status: number, headers: ReplyHeaders): void {
    if (status < 200 || this.#aborted) return;
    const isAgain = isProviderFault(status) && this.#tries < this.#deps.retries;
    if (status < 500) this.#deps.breaker.succeeded();
    else if (!isAgain)
      this.#deps.breaker.failed(
        `it answered ${status}`,
        (this.#sending.options.body as Buffer | null) ?? undefined,
      );
    if (isAgain) {
      const retryAfter = headers["retry-after"];
      this.#again(typeof retryAfter === "string" ? retryAfter : undefined);
      return;
    }
    this.#passing = true;
    this.#receiver.onStart(status, headers);
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (!this.#passing || this.#aborted) return;
    if (!this.#receiver.onData(chunk)) controller.pause();
  }

  onResponseEnd(): void {
    if (this.#passing && !this.#aborted) this.#receiver.onEnd();
  }

  onResponseError(_controller: unknown, error: Error): void {
    // An attempt that was abandoned for a retry also ends here.
    if (this.#aborted || this.#timer !== undefined) return;
    if (!this.#passing && this.#tries < this.#deps.retries) {
      this.#again(undefined);
      return;
    }
    const failure = unreachable(this.#deps, error);
    this.#deps.breaker.failed(String(failure.fields.reason));
    this.#receiver.onError(failure);
  }

  #again(retryAfter: string | undefined): void {
    const old = this.#controller;
    this.#deps.onRetry();
    this.#timer = setTimeout(
      () => {
        this.#timer = undefined;
        this.start();
      },
      this.#deps.delayMs(this.#tries++, retryAfter),
    );
    old?.abort(new Error("tried again"));
  }
}

/** Removes a user name and password from a URL. */
function withoutUser(url: string): string {
  return url.replace(/\/\/[^/@]*@/, "//");
}

function fixedHeaders(config: UpstreamConfig, key: string | undefined): string[] {
  const headers = Object.entries(config.headers).flat();
  if (key !== undefined) headers.push(...keyHeader(config.auth, key));
  return headers;
}

function keyHeader(auth: UpstreamConfig["auth"], key: string): [name: string, value: string] {
  switch (auth) {
    case "bearer":
      return ["authorization", `Bearer ${key}`];
    case "x-api-key":
      return ["x-api-key", key];
    default:
      return auth satisfies never;
  }
}

/** Faults of an upstream, with the status of the refusal that a client gets. */
export const UPSTREAM_FAULTS = {
  "upstream-failed": 502,
  "upstream-timeout": 504,
  "upstream-resting": 503,
} as const;

function upstreamFault(
  code: keyof typeof UPSTREAM_FAULTS,
  ...rest: [Readonly<Record<string, unknown>>, string, { cause: Error }?]
): RollbookError {
  return new RollbookError(code, ...rest);
}

function breakerOpen({ name: upstream, breaker, url }: AttemptRules, waitMs: number): RollbookError {
  return upstreamFault(
    "upstream-resting",
    { upstream, waitMs },
    `upstream \`${upstream}\` (${url}) fails: ${breaker.lastFailure}. It is paused for ${Math.ceil(waitMs / 1000)} s after repeated failures. Check that the server runs at this URL, or route elsewhere.`,
  );
}

function unreachable({ name: upstream, url }: AttemptRules, cause: Error): RollbookError {
  const { code } = cause as NodeJS.ErrnoException;
  const isTimeout = code === "UND_ERR_HEADERS_TIMEOUT" || code === "UND_ERR_BODY_TIMEOUT";
  const reason = isTimeout ? "it did not answer in time" : reasonOf(cause);
  return upstreamFault(
    isTimeout ? "upstream-timeout" : "upstream-failed",
    { upstream, code: code ?? null, reason },
    `upstream \`${upstream}\` (${url}) failed: ${reason}.`,
    { cause },
  );
}
