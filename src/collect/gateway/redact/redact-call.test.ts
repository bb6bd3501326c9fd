import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { leaks } from "../../../../test/support/leaks.ts";
import { partsToKeep } from "../call/journaled-bytes.ts";
import { type DialectName, dialectNamed } from "../dialects/index.ts";
import { parseBody, readerOf } from "../wire/index.ts";
import { redactOptions } from "./redact.ts";
import { redactCall } from "./redact-call.ts";

const SECRETS = ["sk-abc/def+0123", "plainsecret", "another-secret?=yes"];
const redact = redactCall(redactOptions(SECRETS, { patterns: [] }))!;
/** Placeholder for the secret. */
const HERE = "@here@";

function kept(dialectName: DialectName, body: string, chunks: readonly Buffer[], form: "json" | "sse") {
  const dialect = dialectNamed(dialectName);
  const reader = readerOf(form, dialect, { joinsTexts: true });
  for (const chunk of chunks) reader.push(chunk);
  const request = () => dialect.readRequest(parseBody(Buffer.from(body)))!;
  return partsToKeep({ request, body: Buffer.from(body), reader, tooLarge: false }, redact);
}

function written({ request, reply, media }: ReturnType<typeof kept>): Buffer {
  return Buffer.concat([request, Buffer.from("\n"), ...reply, Buffer.from("\n"), ...media]);
}

const REQUESTS: Readonly<Record<DialectName, object>> = {
  "openai-chat": {
    model: "m",
    messages: [
      { role: "system", content: "be brief", name: "n" },
      {
        role: "user",
        content: [
          { type: "text", text: "see" },
          { type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } },
        ],
      },
      {
        role: "assistant",
        tool_calls: [{ id: "c", type: "function", function: { name: "f", arguments: '{"a":"b"}' } }],
      },
    ],
    tools: [{ type: "function", function: { name: "f", description: "d", parameters: { enum: ["x"] } } }],
    ...{ stop: ["s"], user: "u", metadata: { k: "v" } },
  },
  "openai-completions": { model: "m", prompt: ["p", "q"], suffix: "s", user: "u" },
  "openai-responses": {
    model: "m",
    input: [
      { type: "message", role: "user", content: [{ type: "input_file", filename: "a", file_data: "AAAA" }] },
      { type: "function_call_output", output: "o" },
    ],
    ...{ instructions: "i", tools: [{ name: "t" }], metadata: { k: "v" } },
  },
  "anthropic-messages": {
    model: "m",
    system: [{ type: "text", text: "s" }],
    messages: [
      {
        role: "user",
        content: [{ type: "image", source: { type: "base64", media_type: "image/png", data: "AAAA" } }],
      },
      { role: "assistant", content: [{ type: "tool_use", id: "t", name: "f", input: { a: ["b"] } }] },
    ],
    ...{ tools: [{ name: "f", input_schema: { title: "t" } }], metadata: { user_id: "u" } },
  },
};

const REPLIES: Readonly<Record<DialectName, object>> = {
  "openai-chat": {
    ...{ id: "i", system_fingerprint: "f" },
    choices: [
      {
        index: 0,
        message: {
          role: "assistant",
          content: "c",
          refusal: "r",
          tool_calls: [{ id: "t", function: { name: "f", arguments: "{}" } }],
        },
        finish_reason: "stop",
        logprobs: { content: [{ token: "t", logprob: -1 }] },
      },
    ],
  },
  "openai-completions": { id: "i", choices: [{ text: "t", finish_reason: "stop" }] },
  "openai-responses": {
    ...{ id: "i", status: "completed", error: { message: "e" } },
    output: [
      {
        type: "message",
        id: "m",
        content: [{ type: "output_text", text: "t", annotations: [{ url: "u" }] }],
      },
      { type: "image_generation_call", result: "AAAA" },
    ],
  },
  "anthropic-messages": {
    id: "i",
    role: "assistant",
    stop_reason: "end_turn",
    content: [
      { type: "text", text: "t" },
      { type: "tool_use", id: "u", name: "n", input: { a: "b" } },
    ],
  },
};

/** Variants of the value with `HERE` in one of its texts or keys, for each of them except the model's name. */
function placed(value: unknown, path: readonly string[] = []): ((text: string) => unknown)[] {
  if (typeof value === "string") return path.at(-1) === "model" ? [] : [(text) => text];
  if (Array.isArray(value))
    return value.flatMap((item, i) =>
      placed(item, path).map(
        (put) => (text: string) => value.map((each, at) => (at === i ? put(text) : each)),
      ),
    );
  if (typeof value !== "object" || value === null) return [];
  const entries = Object.entries(value);
  const inValues = entries.flatMap(([key, item]) =>
    placed(item, [...path, key]).map((put) => (text: string) => ({ ...value, [key]: put(text) })),
  );
  return [...inValues, (text) => ({ ...value, [text]: "v" })];
}

const hex = (code: number, digits: number) => code.toString(16).padStart(digits, "0");

/** Spellings of a secret in a text, and of that text in JSON. */
const spelling = fc
  .record({
    secret: fc.constantFrom(...SECRETS),
    kind: fc.constantFrom("plain", "base64", "base64url", "wrapped", "percent", "data-url", "utf-16"),
    before: fc.constantFrom("", "a", "bc ", "ü", "x-"),
    after: fc.constantFrom("", "d", " ef"),
    subset: fc.array(fc.boolean(), { minLength: 60, maxLength: 60 }),
    upper: fc.boolean(),
  })
  .map(({ secret, kind, before, after, subset, upper }) => {
    const base64 = Buffer.from(before + secret + after + "z".repeat(60)).toString("base64");
    const percent = [...secret]
      .map((c, i) =>
        subset[i] ? `%${upper ? hex(c.charCodeAt(0), 2).toUpperCase() : hex(c.charCodeAt(0), 2)}` : c,
      )
      .join("");
    const texts = {
      plain: before + secret + after,
      base64,
      base64url: Buffer.from(before + secret + after).toString("base64url"),
      wrapped: `data:text/plain;base64,${base64.replaceAll(/.{20}/g, "$&\n")}`,
      percent: before + percent + after,
      "utf-16": Buffer.from(before + secret + after, "utf16le").toString("latin1"),
      "data-url": `data:image/png;base64,${base64}`,
    };
    return { secret, text: texts[kind], subset };
  });

/** JSON of a text with some of its characters as escapes. */
function escaped(text: string, subset: readonly boolean[], level = 0): string {
  const slash = "\\".repeat(2 ** level);
  return [...text]
    .map((c, i) => {
      const isEscaped = subset[i % subset.length] && c.charCodeAt(0) < 128;
      return isEscaped ? `${slash}u${hex(c.charCodeAt(0), 4)}` : JSON.stringify(c).slice(1, -1);
    })
    .join("");
}

const dialects = fc.constantFrom(...(Object.keys(REQUESTS) as DialectName[]));

describe("a secret that the gateway knows", () => {
  it("is written from no field of any dialect, however it is spelled", () => {
    fc.assert(
      fc.property(
        dialects,
        spelling,
        fc.nat(),
        fc.boolean(),
        fc.integer({ min: 0, max: 2 }),
        (dialect, { secret, text, subset }, at, isAsked, level) => {
          const template = isAsked ? REQUESTS[dialect] : REPLIES[dialect];
          const places = placed(template);
          const inJson = JSON.stringify(places[at % places.length]!(HERE)).replace(HERE, () =>
            escaped(text, subset, level),
          );
          const body = isAsked ? inJson : JSON.stringify(REQUESTS[dialect]);
          const reply = isAsked ? JSON.stringify(REPLIES[dialect]) : inJson;
          const parts = kept(dialect, body, [Buffer.from(reply)], "json");
          expect(leaks(written(parts), secret)).toBe(false);
        },
      ),
      { numRuns: 2000 },
    );
  });

  it("is written neither from a key that appears twice nor from a reply that is no JSON", () => {
    fc.assert(
      fc.property(dialects, spelling, fc.boolean(), (dialect, { secret, text, subset }, isCut) => {
        const twice = JSON.stringify(REPLIES[dialect]).replace(
          "{",
          () => `{"id":"${escaped(text, subset)}","id":"x",`,
        );
        const reply = isCut ? twice.slice(0, -3) : twice;
        const body = JSON.stringify(REQUESTS[dialect]).replace(
          "{",
          () => `{"user":"${escaped(text, subset)}",`,
        );
        expect(leaks(written(kept(dialect, body, [Buffer.from(reply)], "json")), secret)).toBe(false);
      }),
      { numRuns: 500 },
    );
  });

  it("is written from no stream over whose deltas it is split, whole or cut", () => {
    const cuts = fc.array(fc.nat(80), { maxLength: 12 });
    fc.assert(
      fc.property(
        fc.constantFrom(...STREAMS),
        spelling,
        cuts,
        fc.boolean(),
        fc.integer({ min: 1, max: 5000 }),
        ({ dialect, event, other, last }, { secret, text, subset }, at, isCut, chunkBytes) => {
          const edges = [0, ...at.map((each) => each % (text.length + 1)).sort((a, b) => a - b), text.length];
          const pieces = edges.slice(1).map((end, i) => text.slice(edges[i], end));
          const events = pieces.flatMap((piece) => [event(`"${escaped(piece, subset)}"`), other]);
          const bytes = Buffer.from(
            [...events, ...(isCut ? [] : [last])].map((each) => `data: ${each}\n\n`).join(""),
          );
          const chunks = Array.from({ length: Math.ceil(bytes.length / chunkBytes) }, (_, i) =>
            bytes.subarray(i * chunkBytes, (i + 1) * chunkBytes),
          );
          const parts = kept(dialect, JSON.stringify(REQUESTS[dialect]), chunks, "sse");
          expect(parts.replyForm).toBe("facts");
          expect(leaks(written(parts), secret)).toBe(false);
        },
      ),
      { numRuns: 1000 },
    );
  });
});

it("a call without a secret is kept byte for byte, with escapes, percent signs and pictures in it", () => {
  const picture = Buffer.from(Array.from({ length: 3000 }, (_, i) => (i * 7919) % 251)).toString("base64");
  const body = JSON.stringify({
    model: "m",
    messages: [{ role: "user", content: `100% \\u0073 ü\n data:image/png;base64,${picture}` }],
  });
  const reply =
    '{"choices":[{"message":{"role":"assistant","content":"\\u0041\\ud83d 5%20x"},"finish_reason":"stop"}]}';
  const parts = kept("openai-chat", body, [Buffer.from(reply)], "json");
  expect([parts.requestForm, parts.replyForm]).toEqual(["body", "json"]);
  expect(Buffer.concat(parts.reply).toString()).toBe(reply);
});

it("text of backslashes, percent signs or base64 alone is looked through in a moment", () => {
  const before = process.cpuUsage();
  for (const unit of ["\\", "%", "%25", "c2st", "sk-", "\\u0073", "a\n"]) {
    const body = JSON.stringify({ model: "m", messages: [{ role: "user", content: unit.repeat(300_000) }] });
    kept("openai-chat", body, [Buffer.from("{}")], "json");
  }
  expect(process.cpuUsage(before).user / 1000).toBeLessThan(8000);
});

/** Places of text pieces in the streams of each dialect. `other` is an event of another part, sent between the
 *  pieces. */
const STREAMS: readonly {
  dialect: DialectName;
  event: (piece: string) => string;
  other: string;
  last: string;
}[] = [
  ...[
    '"content":@',
    '"reasoning_content":@',
    '"refusal":@',
    '"tool_calls":[{"index":1,"function":{"arguments":@}}]',
    '"tool_calls":[{"index":0,"function":{"name":@}}]',
    '"x":{"y":@}',
  ].map((delta) => ({
    dialect: "openai-chat" as const,
    event: (piece: string) => `{"choices":[{"index":1,"delta":{${delta.replace("@", () => piece)}}}]}`,
    other:
      '{"choices":[{"index":0,"delta":{"content":"z","tool_calls":[{"index":2,"function":{"arguments":"z","name":"z"}}]}}]}',
    last: "[DONE]",
  })),
  {
    dialect: "openai-completions",
    event: (piece) => `{"choices":[{"index":1,"text":${piece}}]}`,
    other: '{"choices":[{"index":0,"text":"z"}]}',
    last: "[DONE]",
  },
  ...[
    "response.output_text.delta",
    "response.function_call_arguments.delta",
    "response.reasoning_summary_text.delta",
  ].map((type) => ({
    dialect: "openai-responses" as const,
    event: (piece: string) =>
      `{"type":"${type}","item_id":"a","output_index":0,"content_index":0,"delta":${piece}}`,
    other: `{"type":"${type}","item_id":"b","output_index":1,"content_index":0,"delta":"z"}`,
    last: '{"type":"response.completed","response":{"status":"completed","output":[]}}',
  })),
  ...["text", "thinking", "signature", "partial_json", "unknown"].map((field) => ({
    dialect: "anthropic-messages" as const,
    event: (piece: string) =>
      `{"type":"content_block_delta","index":1,"delta":{"type":"t","${field}":${piece}}}`,
    other: '{"type":"content_block_delta","index":0,"delta":{"type":"t","text":"z"}}',
    last: '{"type":"message_stop"}',
  })),
];
