/** An upstream in this process, without a socket: a function from a fetch Request to a fetch Response. In: such a
 *  function. Out: the part of undici's dispatcher that the gateway uses. Retries, breaker, streaming and recording
 *  are the same as over the wire. Does not look into bodies. */
import type { Dispatcher } from "undici";
import { RollbookError } from "../../../base/index.ts";

/** Simulators and small models use it. The request's signal aborts when the client leaves or the time is up. */
export type LocalUpstream = (request: Request) => Response | Promise<Response>;

const SCHEME = "local:";

/** The name in a base URL `local:<name>`. Undefined for every other base URL. */
export function localName(baseUrl: string): string | undefined {
  return baseUrl.startsWith(SCHEME) ? baseUrl.slice(SCHEME.length) : undefined;
}

export function findLocal(
  upstream: string,
  name: string,
  given: Readonly<Record<string, LocalUpstream>> = {},
): LocalUpstream {
  if (Object.hasOwn(given, name)) return given[name]!;
  throw new RollbookError(
    "bad-config",
    { upstream, name },
    `upstream \`${upstream}\` is ${SCHEME}${name}, and no local upstream of that name was given. Pass it as \`local\`, or name a URL.`,
  );
}

export class LocalDispatcher implements Pick<Dispatcher, "dispatch"> {
  readonly #serve: LocalUpstream;
  readonly #timeoutMs: number;
  readonly #running = new Set<LocalExchange>();

  constructor(serve: LocalUpstream, { timeoutMs }: { timeoutMs: number }) {
    this.#serve = serve;
    this.#timeoutMs = timeoutMs;
  }

  dispatch(options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): boolean {
    const exchange = new LocalExchange(handler, this.#timeoutMs);
    this.#running.add(exchange);
    void exchange.run(this.#serve, options).finally(() => this.#running.delete(exchange));
    return true;
  }

  async destroy(): Promise<void> {
    for (const exchange of this.#running) exchange.abort(new Error("the gateway closes"));
  }
}

/** One request and its reply. After an abort it waits for nothing, even if the function continues. */
class LocalExchange implements Dispatcher.DispatchController {
  readonly #handler: Dispatcher.DispatchHandler;
  readonly #timeoutMs: number;
  readonly #stop = new AbortController();
  readonly #stopped: Promise<never>;
  #resumed: (() => void) | undefined;
  #going: Promise<void> | undefined;

  constructor(handler: Dispatcher.DispatchHandler, timeoutMs: number) {
    this.#handler = handler;
    this.#timeoutMs = timeoutMs;
    this.#stopped = new Promise((_, reject) => {
      this.#stop.signal.addEventListener("abort", () => reject(this.#stop.signal.reason), { once: true });
    });
    this.#stopped.catch(() => {}); // callers that await #stopped handle the rejection
  }

  get aborted(): boolean {
    return this.#stop.signal.aborted;
  }

  get paused(): boolean {
    return this.#going !== undefined;
  }

  get reason(): Error | null {
    return this.aborted ? (this.#stop.signal.reason as Error) : null;
  }

  abort(reason: Error): void {
    this.#stop.abort(reason);
  }

  pause(): void {
    this.#going ??= new Promise((resolve) => {
      this.#resumed = resolve;
    });
  }

  resume(): void {
    this.#resumed?.();
    this.#resumed = undefined;
    this.#going = undefined;
  }

  async run(serve: LocalUpstream, options: Dispatcher.DispatchOptions): Promise<void> {
    const handler = this.#handler;
    try {
      handler.onRequestStart?.(this, undefined);
      const request = requestOf(options, this.#stop.signal);
      const response = await this.#inTime(Promise.resolve(request).then(serve));
      handler.onResponseStart?.(this, response.status, Object.fromEntries(response.headers));
      const reader = response.body?.getReader();
      while (reader !== undefined) {
        if (this.#going !== undefined) await Promise.race([this.#going, this.#stopped]);
        const { done, value } = await this.#inTime(reader.read());
        if (done) break;
        handler.onResponseData?.(this, Buffer.from(value.buffer, value.byteOffset, value.byteLength));
      }
      handler.onResponseEnd?.(this, {});
    } catch (error) {
      handler.onResponseError?.(this, error instanceof Error ? error : new Error(String(error)));
    }
  }

  async #inTime<T>(work: Promise<T>): Promise<T> {
    const timer = setTimeout(() => this.abort(tooLate()), this.#timeoutMs);
    try {
      return await Promise.race([work, this.#stopped]);
    } finally {
      clearTimeout(timer);
    }
  }
}

function requestOf(
  { method, path, headers, body }: Dispatcher.DispatchOptions,
  signal: AbortSignal,
): Request {
  const flat = headers as readonly string[];
  const pairs = Array.from({ length: flat.length / 2 }, (_, i): [string, string] => [
    flat[2 * i]!,
    flat[2 * i + 1]!,
  ]);
  return new Request(`http://local${path}`, {
    method,
    headers: pairs,
    signal,
    ...(body === null || body === undefined ? {} : { body: body as Buffer<ArrayBuffer> }),
  });
}

/** Uses undici's error code of a late upstream. */
function tooLate(): Error {
  return Object.assign(new Error("no answer in time"), { code: "UND_ERR_BODY_TIMEOUT" });
}
