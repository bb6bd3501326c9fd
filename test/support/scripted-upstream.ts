/** A scripted upstream: it plays one act per request, in order, and records the requests. The acts cover faults of real
 *  providers: slow, 429, 500, cut in the middle, malformed, huge. */
import { createServer, type IncomingHttpHeaders, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";

export interface Asked {
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

export type Act = (response: ServerResponse, asked: Asked) => void | Promise<void>;

export class ScriptedUpstream {
  readonly asked: Asked[] = [];
  readonly #server: Server;
  #acts: Act[] = [];
  /** The act after the end of the script. */
  otherwise: Act = json({ error: { message: "no act left" } }, 500);

  private constructor() {
    this.#server = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on("data", (chunk: Buffer) => chunks.push(chunk));
      request.on("end", () => {
        const body = Buffer.concat(chunks).toString();
        const asked = { url: request.url!, headers: request.headers, body };
        this.asked.push(asked);
        void (this.#acts.shift() ?? this.otherwise)(response, asked);
      });
    });
  }

  static async open(): Promise<ScriptedUpstream> {
    const upstream = new ScriptedUpstream();
    await new Promise<void>((done) => upstream.#server.listen(0, "127.0.0.1", done));
    return upstream;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  play(...acts: Act[]): this {
    this.#acts.push(...acts);
    return this;
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((done) => this.#server.close(done));
  }
}

export function json(value: unknown, status = 200, headers: Record<string, string> = {}): Act {
  return (response) => {
    response.writeHead(status, { "content-type": "application/json", ...headers });
    response.end(typeof value === "string" ? value : JSON.stringify(value));
  };
}

/** Server-sent events, each in its own write, `gapMs` apart. Strings are sent unchanged. */
export function stream(
  events: readonly (string | { event?: string; data: unknown })[],
  options: { gapMs?: number; cutAfter?: number } = {},
): Act {
  return async (response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    for (const [i, event] of events.entries()) {
      if (i === options.cutAfter) {
        // Pending bytes leave before the socket is destroyed.
        await sleep(20);
        response.destroy();
        return;
      }
      response.write(eventText(event));
      if (options.gapMs !== undefined) await sleep(options.gapMs);
    }
    response.end();
  };
}

export function eventText(event: string | { event?: string; data: unknown }): string {
  if (typeof event === "string") return event;
  const data = typeof event.data === "string" ? event.data : JSON.stringify(event.data);
  return `${event.event === undefined ? "" : `event: ${event.event}\n`}data: ${data}\n\n`;
}

export function slow(act: Act, ms: number): Act {
  return async (response, asked) => {
    await sleep(ms);
    await act(response, asked);
  };
}

/** Accepts the request and disconnects. */
export const hangUp: Act = (response) => void response.destroy();

/** A chat completion in OpenAI's public form. */
export function chatReply(message: object, more: object = {}): object {
  return {
    id: "chatcmpl-1",
    object: "chat.completion",
    created: 1,
    model: "tiny-1",
    choices: [
      { index: 0, message: { role: "assistant", ...message }, finish_reason: "stop", logprobs: null },
    ],
    usage: { prompt_tokens: 7, completion_tokens: 3, total_tokens: 10 },
    ...more,
  };
}

/** A chat completion as a stream: one chunk per delta, then the finish, usage and [DONE]. */
export function chatStream(deltas: readonly object[], finish = "stop"): { data: unknown }[] {
  const chunk = (choices: object[], more: object = {}) => ({
    data: {
      id: "chatcmpl-1",
      object: "chat.completion.chunk",
      created: 1,
      model: "tiny-1",
      choices,
      ...more,
    },
  });
  return [
    ...deltas.map((delta) => chunk([{ index: 0, delta, finish_reason: null }])),
    chunk([{ index: 0, delta: {}, finish_reason: finish }]),
    chunk([], { usage: { prompt_tokens: 7, completion_tokens: 3, total_tokens: 10 } }),
    { data: "[DONE]" },
  ];
}
