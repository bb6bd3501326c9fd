import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type ChatPart, readTurn, sameTurn } from "./read-turn.ts";

const call = (id: string | null, name: string, args: string): ChatPart => ({
  ...{ kind: "tool-call", id, name, arguments: args },
});
const result = (id: string | null, text: string, failed = false): ChatPart => ({
  ...{ kind: "tool-result", id, text, failed },
});

// Messages written by hand, after the public references of the four formats.
const MESSAGES: [string, unknown, string, ChatPart[]][] = [
  ["text", { role: "user", content: "hi" }, "user", [{ kind: "text", text: "hi" }]],
  ["an error of a server", { error: { message: "no model" } }, "error", [{ kind: "text", text: "no model" }]],
  [
    "parts of text and an image by its digest",
    {
      role: "user",
      content: [
        { type: "text", text: "see" },
        { type: "image_url", image_url: { url: `data:image/png;digest=sha256:${"ab".repeat(32)}` } },
      ],
    },
    "user",
    [
      { kind: "text", text: "see" },
      { kind: "media", type: "image_url", source: `sha256:${"ab".repeat(32)}` },
    ],
  ],
  [
    "OpenAI's tool calls",
    {
      role: "assistant",
      content: null,
      reasoning_content: "hm",
      tool_calls: [{ id: "c1", type: "function", function: { name: "add", arguments: '{"a":1}' } }],
    },
    "assistant",
    [{ kind: "thinking", text: "hm" }, call("c1", "add", '{"a":1}')],
  ],
  ["OpenAI's tool message", { role: "tool", tool_call_id: "c1", content: "3" }, "tool", [result("c1", "3")]],
  [
    "Anthropic's blocks",
    {
      role: "assistant",
      content: [
        { type: "thinking", thinking: "hm", signature: "s" },
        { type: "text", text: "I add" },
        { type: "tool_use", id: "t1", name: "add", input: { a: 1 } },
      ],
    },
    "assistant",
    [{ kind: "thinking", text: "hm" }, { kind: "text", text: "I add" }, call("t1", "add", '{"a":1}')],
  ],
  [
    "Anthropic's tool results, which a user brings",
    {
      role: "user",
      content: [
        { type: "tool_result", tool_use_id: "t1", content: [{ type: "text", text: "no" }], is_error: true },
      ],
    },
    "tool",
    [result("t1", "no", true)],
  ],
  [
    "the function call of a response",
    { type: "function_call", call_id: "f1", name: "add", arguments: "{}" },
    "assistant",
    [call("f1", "add", "{}")],
  ],
  [
    "the output of a function call",
    { type: "function_call_output", call_id: "f1", output: "3" },
    "tool",
    [result("f1", "3")],
  ],
  [
    "the reasoning of a response",
    { type: "reasoning", summary: [{ type: "summary_text", text: "hm" }] },
    "assistant",
    [{ kind: "thinking", text: "hm" }],
  ],
  ["a text completion", { role: "completion", content: "4" }, "assistant", [{ kind: "text", text: "4" }]],
  ["a refusal", { role: "assistant", refusal: "no" }, "assistant", [{ kind: "text", text: "no" }]],
];

describe("a message", () => {
  it.each(MESSAGES)("as %s is a turn", (_name, message, role, parts) => {
    expect(readTurn(message)).toEqual({ role, parts });
  });

  it("of any JSON is a turn, and text in it is not lost", () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const { role, parts } = readTurn(value);
        expect(typeof role).toBe("string");
        for (const part of parts)
          expect(part.kind).toMatch(/^(text|thinking|tool-call|tool-result|media|other)$/);
      }),
    );
    fc.assert(
      fc.property(fc.string({ minLength: 1 }), (text) => {
        expect(readTurn({ role: "user", content: [{ type: "text", text }] }).parts).toEqual([
          { kind: "text", text },
        ]);
      }),
    );
  });

  it("is the same with nulls dropped, arguments written anew and thinking left out", () => {
    const tool = (args: string) => [{ id: "c", type: "function", function: { name: "f", arguments: args } }];
    const reply = {
      role: "assistant",
      content: null,
      refusal: null,
      reasoning_content: "hm",
      tool_calls: tool('{"a": 1, "b": 2}'),
    };
    const resent = { role: "assistant", content: "", tool_calls: tool('{"b":2,"a":1}') };
    expect(sameTurn(readTurn(reply), readTurn(resent))).toBe(true);
    expect(sameTurn(readTurn(reply), readTurn({ ...resent, tool_calls: tool("{}") }))).toBe(false);
    expect(
      sameTurn(readTurn({ role: "user", content: "a" }), readTurn({ role: "system", content: "a" })),
    ).toBe(false);
  });
});
