/** A receiver of OTLP over HTTP on loopback, for one test. Accepts JSON only. Checks the ids, times and attribute
 *  values of every span against the JSON form of the OTLP specification. */
import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, onTestFinished } from "vitest";
import { z } from "zod";

const scalar = z.union([
  z.strictObject({ stringValue: z.string() }),
  z.strictObject({ intValue: z.string().regex(/^-?\d+$/) }),
  z.strictObject({ doubleValue: z.number() }),
]);
const value = z.union([scalar, z.strictObject({ arrayValue: z.strictObject({ values: z.array(scalar) }) })]);
const attributes = z.array(z.strictObject({ key: z.string().min(1), value }));
const traceId = z.string().regex(/^(?!0{32})[0-9a-f]{32}$/);
const spanId = z.string().regex(/^(?!0{16})[0-9a-f]{16}$/);
/** 19 digits: nanoseconds of this century. */
const nanoseconds = z.string().regex(/^1\d{18}$/);
const span = z.strictObject({
  ...{ traceId, spanId, parentSpanId: spanId.optional(), name: z.string().min(1) },
  ...{ kind: z.number().int().min(1).max(5), startTimeUnixNano: nanoseconds, endTimeUnixNano: nanoseconds },
  attributes,
  links: z.array(z.strictObject({ traceId, spanId })).optional(),
  status: z.strictObject({ code: z.literal(2) }).optional(),
});
const request = z.strictObject({
  resourceSpans: z.tuple([
    z.strictObject({
      resource: z.strictObject({ attributes }),
      scopeSpans: z.tuple([
        z.strictObject({ scope: z.strictObject({ name: z.string() }), spans: z.array(span).min(1) }),
      ]),
    }),
  ]),
});

type Attributes = z.infer<typeof attributes>;
export type ReceivedSpan = Omit<z.infer<typeof span>, "attributes"> & { attributes: Record<string, unknown> };

export interface Received {
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

export class OtlpReceiver {
  readonly received: Received[] = [];
  /** The statuses of the next replies; 200 if the list is empty. */
  readonly statuses: number[] = [];
  reply = "{}";
  /** True if the receiver accepts requests and sends no reply. */
  hangs = false;
  /** True if replies begin and never end. */
  endless = false;
  readonly #server = createServer((message, response) => {
    const chunks: Buffer[] = [];
    message.on("data", (chunk: Buffer) => chunks.push(chunk));
    message.on("end", () => {
      const body = Buffer.concat(chunks).toString();
      this.received.push({ url: message.url!, headers: message.headers, body });
      if (this.hangs) return;
      response.writeHead(this.statuses.shift() ?? 200, { "content-type": "application/json" });
      if (this.endless) pour(response);
      else response.end(this.reply);
    });
  });

  static async open(): Promise<OtlpReceiver> {
    const receiver = new OtlpReceiver();
    await new Promise<void>((done) => receiver.#server.listen(0, "127.0.0.1", done));
    onTestFinished(() => receiver.close());
    return receiver;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  get spans(): ReceivedSpan[] {
    return this.#requests().flatMap(({ scopeSpans: [{ spans }] }) =>
      spans.map((each) => {
        expect(BigInt(each.startTimeUnixNano)).toBeLessThanOrEqual(BigInt(each.endTimeUnixNano));
        return { ...each, attributes: plain(each.attributes) };
      }),
    );
  }

  get resource(): Record<string, unknown> {
    return plain(this.#requests()[0]!.resource.attributes);
  }

  #requests() {
    return this.received.map(({ url, headers, body }) => {
      expect(url).toBe("/v1/traces");
      expect(headers["content-type"]).toBe("application/json");
      return request.parse(JSON.parse(body)).resourceSpans[0];
    });
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    if (this.#server.listening) await new Promise((done) => this.#server.close(done));
  }
}

/** Writes as fast as the client reads, until the client disconnects. */
function pour(response: ServerResponse): void {
  const some = Buffer.alloc(1 << 16, " ");
  const more = () => {
    while (!response.destroyed && response.write(some));
  };
  response.on("drain", more);
  more();
}

function plain(list: Attributes): Record<string, unknown> {
  const keys = list.map(({ key }) => key);
  expect(new Set(keys).size).toBe(keys.length);
  return Object.fromEntries(list.map(({ key, value: each }) => [key, plainValue(each)]));
}

function plainValue(each: z.infer<typeof value>): unknown {
  if ("arrayValue" in each) return each.arrayValue.values.map(plainValue);
  if ("stringValue" in each) return each.stringValue;
  return "intValue" in each ? BigInt(each.intValue) : each.doubleValue;
}
