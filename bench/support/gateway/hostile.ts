/** Requests and replies as an attacker or a faulty model would write them. In: a random generator. Out: JSON text, or
 *  bytes that are nearly JSON: lone surrogates, overflowing numbers, deep nesting, `__proto__` and method names as
 *  keys, duplicate keys, texts cut or broken anywhere, events in chunks of any size. */
import type { Rng } from "../../../src/base/rng.ts";

export type HostileDialect = "chat" | "completions" | "responses" | "messages";

export const HOSTILE_PATHS: Readonly<Record<HostileDialect, string>> = {
  chat: "/v1/chat/completions",
  completions: "/v1/completions",
  responses: "/v1/responses",
  messages: "/v1/messages",
};

const STRINGS = [
  ...[
    '"\\ud83d"',
    '"\\udc00x"',
    '"a\\ud800\\ud800b"',
    '"\\u0000"',
    '""',
    '"stop"',
    '"tool_calls"',
    '"[DONE]"',
  ],
  ...['"assistant"', '"\\u2028\\u2029"', '"data:image/png;base64,AAAA"', '"__proto__"', '"\\\\ud83d"'],
];
const NUMBERS = [
  "1e999",
  "-1e999",
  "1e-999",
  "12345678901234567890",
  "-0",
  "0.1",
  "4294967296",
  "-1",
  "1e300",
];
const WORDS = ["null", "true", "false", "{}", "[]"];
const KEYS = [
  ...[
    "__proto__",
    "constructor",
    "toString",
    "valueOf",
    "hasOwnProperty",
    "",
    "\\ud800",
    "index",
    "id",
    "type",
  ],
  ...["role", "content", "arguments", "name", "length", "text", "error", "tool_calls", "data", "format"],
];
const DEPTHS = [3, 90, 99, 101, 120, 125, 126, 127, 128, 129, 200, 511, 512, 513, 2000, 9000];

export class HostileText {
  readonly #rng: Rng;

  constructor(rng: Rng) {
    this.#rng = rng;
  }

  /** Any JSON value. */
  value(depth = 0): string {
    const kind = this.#rng.below(depth > 3 ? 3 : 7);
    if (kind === 0) return this.#pick(STRINGS);
    if (kind === 1) return this.#pick(NUMBERS);
    if (kind === 2) return this.#pick(WORDS);
    if (kind === 3) return this.#nest();
    const size = this.#rng.below(4);
    if (kind === 4) return `[${this.#several(size, () => this.value(depth + 1))}]`;
    return `{${this.#several(size, () => `"${this.#pick(KEYS)}":${this.value(depth + 1)}`)}}`;
  }

  /** The usual value, or sometimes any other value. */
  perhaps(usual: string): string {
    return this.#rng.float() < 0.8 ? usual : this.value();
  }

  request(dialect: HostileDialect, stream: boolean): string {
    const message = `{"role":${this.perhaps('"user"')},"content":${this.perhaps('"hi"')},"tool_calls":${this.perhaps(`[${this.#call()}]`)}}`;
    const rest = `"stream":${stream},"seed":${this.perhaps("7")},"tools":${this.perhaps("null")},"max_tokens":${this.perhaps("9")},"stop":${this.perhaps("null")},"x":${this.perhaps("1")}`;
    const asked = {
      chat: `"messages":[${message}]`,
      messages: `"messages":[${message}],"system":${this.perhaps('"s"')}`,
      completions: `"prompt":${this.perhaps('"p"')}`,
      responses: `"input":${this.perhaps(`[${message}]`)},"instructions":${this.perhaps('"i"')}`,
    };
    return `{"model":"tiny",${asked[dialect]},${rest}}`;
  }

  reply(dialect: HostileDialect): Buffer {
    return this.#broken(this.#whole(dialect));
  }

  /** Events, in chunks of any size. */
  stream(dialect: HostileDialect): Buffer[] {
    const breaks = this.#pick(["\n", "\r\n", "\r"]);
    const text = this.#events(dialect)
      .map((event) => event.replaceAll("\n", breaks))
      .join("");
    const bytes = this.#broken(text);
    const most = this.#pick([1, 7, 1000, bytes.length + 1]);
    const chunks: Buffer[] = [];
    for (let at = 0; at < bytes.length; ) {
      const size = 1 + this.#rng.below(most);
      chunks.push(bytes.subarray(at, at + size));
      at += size;
    }
    return chunks;
  }

  #whole(dialect: HostileDialect): string {
    const usage = this.perhaps(
      `{"prompt_tokens":${this.perhaps("3")},"completion_tokens":${this.perhaps("2")},"input_tokens":${this.perhaps("9007199254740991")},"output_tokens":${this.perhaps("9007199254740991")},"cache_read_input_tokens":${this.perhaps("9007199254740991")}}`,
    );
    const tokens = `"prompt_token_ids":${this.perhaps("[1,2]")},"token_ids":${this.perhaps("[3,4]")},"logprobs":${this.perhaps(`{"content":[{"logprob":${this.perhaps("-0.5")}},{"logprob":${this.perhaps("-1")}}]}`)}`;
    switch (dialect) {
      case "chat":
        return `{"id":${this.perhaps('"x"')},"choices":[{"index":0,"message":${this.#message()},"finish_reason":${this.perhaps('"stop"')},${tokens}}],"usage":${usage}}`;
      case "completions":
        return `{"choices":[{"text":${this.perhaps('"t"')},"finish_reason":${this.perhaps('"stop"')},${tokens}}],"usage":${usage}}`;
      case "responses":
        return `{"status":${this.perhaps('"completed"')},"output":[${this.perhaps(this.#item())}],"usage":${usage}}`;
      case "messages":
        return `{"type":"message","role":"assistant","content":[{"type":"text","text":${this.perhaps('"t"')}},{"type":"tool_use","id":"a","name":"f","input":${this.value()}}],"stop_reason":${this.perhaps('"end_turn"')},"usage":${usage}}`;
      default:
        return dialect satisfies never;
    }
  }

  #events(dialect: HostileDialect): string[] {
    const event = (data: string, type?: string) =>
      `${type === undefined ? "" : `event: ${type}\n`}data: ${data}\n\n`;
    const last = this.#rng.float() < 0.8;
    const pieces = Array.from({ length: 1 + this.#rng.below(4) }, () => this.value());
    switch (dialect) {
      case "chat":
        return [
          ...pieces.map((piece) =>
            event(
              `{"choices":[{"index":${this.perhaps("0")},"delta":{"content":${this.perhaps('"t"')},"tool_calls":[{"index":${this.perhaps("0")},"function":{"arguments":${JSON.stringify(piece)}}}],"x":${piece}},"finish_reason":${this.perhaps("null")}}],"usage":${this.perhaps("null")}}`,
            ),
          ),
          ...(last ? [event("[DONE]")] : []),
        ];
      case "completions":
        return [
          ...pieces.map((piece) => event(`{"choices":[{"index":0,"text":${piece},"finish_reason":null}]}`)),
          ...(last ? [event("[DONE]")] : []),
        ];
      case "responses":
        return [
          ...pieces.map((piece) =>
            event(
              `{"type":"response.output_item.done","output_index":${this.perhaps("0")},"item":${this.perhaps(this.#item())},"x":${piece}}`,
            ),
          ),
          ...(last
            ? [event(`{"type":"response.completed","response":${this.perhaps(this.#whole("responses"))}}`)]
            : []),
        ];
      case "messages":
        return [
          event(`{"type":"message_start","message":{"usage":${this.value()}}}`, "message_start"),
          ...pieces.flatMap((piece, i) => [
            event(
              `{"type":"content_block_start","index":${this.perhaps(String(i))},"content_block":${this.perhaps('{"type":"tool_use","id":"a","name":"f"}')}}`,
            ),
            event(
              `{"type":"content_block_delta","index":${i},"delta":{"type":"input_json_delta","partial_json":${JSON.stringify(piece)},"text":${piece},"citation":${this.value()}}}`,
            ),
          ]),
          event(`{"type":"message_delta","delta":${this.value()},"usage":${this.value()}}`),
          ...(last ? [event('{"type":"message_stop"}')] : []),
        ];
      default:
        return dialect satisfies never;
    }
  }

  #message(): string {
    return `{"role":${this.perhaps('"assistant"')},"content":${this.perhaps('"t"')},"tool_calls":${this.perhaps(`[${this.#call()}]`)},"x":${this.value()}}`;
  }

  #item(): string {
    return `{"type":${this.perhaps('"function_call"')},"id":${this.perhaps('"a"')},"name":"f","arguments":${JSON.stringify(this.value())}}`;
  }

  #call(): string {
    return `{"id":${this.perhaps('"a"')},"type":"function","function":{"name":${this.perhaps('"f"')},"arguments":${JSON.stringify(this.value())}}}`;
  }

  /** Mostly unchanged; else cut, with changed bytes, or replaced by other text. */
  #broken(text: string): Buffer {
    const bytes = Buffer.from(text);
    const kind = this.#rng.float();
    if (kind < 0.75 || bytes.length === 0) return bytes;
    if (kind < 0.83) return bytes.subarray(0, this.#rng.below(bytes.length));
    if (kind < 0.95) {
      for (let i = 0; i <= this.#rng.below(4); i++)
        bytes[this.#rng.below(bytes.length)] = this.#rng.below(256);
      return bytes;
    }
    return Buffer.from(Array.from({ length: this.#rng.below(400) }, () => this.#rng.below(256)));
  }

  #nest(): string {
    const depth = this.#pick(DEPTHS);
    return this.#rng.float() < 0.5
      ? `${"[".repeat(depth)}${"]".repeat(depth)}`
      : `${'{"a":'.repeat(depth)}1${"}".repeat(depth)}`;
  }

  #several(count: number, make: () => string): string {
    return Array.from({ length: count }, make).join(",");
  }

  #pick<T>(list: readonly T[]): T {
    return list[this.#rng.below(list.length)]!;
  }
}
