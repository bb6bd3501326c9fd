import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { dialectNamed } from "../dialects/find-dialect.ts";
import { readUsage } from "./reply-usage.ts";

const chat = dialectNamed("openai-chat");
const usage = { prompt_tokens: 7, completion_tokens: 3, prompt_tokens_details: { cached_tokens: 2 } };
const counted = { promptTokens: 7, completionTokens: 3, cachedTokens: 2 };
const read = (body: unknown) =>
  readUsage(Buffer.from(typeof body === "string" ? body : JSON.stringify(body)), chat);

describe("the usage of a whole reply", () => {
  it.each([
    ["at the end", { choices: [], usage }, counted],
    ["before other fields", { choices: [], usage, system_fingerprint: "fp" }, counted],
    ["far from the end", { usage, choices: ["x".repeat(5000)] }, counted],
    ["beside another one further down", { usage, x: { usage: { prompt_tokens: 1 } } }, counted],
    ["after another one further down", { x: { usage: { prompt_tokens: 1 } }, usage }, counted],
    ["only further down", { x: { usage } }, undefined],
    ["only further down, in a list", { x: [{ usage }] }, undefined],
    ["as a text", { choices: [{ message: { content: 'say "usage": {"prompt_tokens": 9}' } }] }, undefined],
    ["as a value", { kind: "usage" }, undefined],
    ["null", { usage: null }, undefined],
    ["absent", { choices: [] }, undefined],
    ["in what is no JSON", '{"usage":{"prompt_tokens":7}', undefined],
    ["in what is no object", '[{"usage":{"prompt_tokens":7}}]', undefined],
  ])("is found %s", (_where, body, expected) => {
    expect(read(body)).toEqual(expected);
  });

  it("is what the dialect reads from the parsed reply, whatever the reply", () => {
    const value = fc.letrec((tie) => ({
      any: fc.oneof(
        { maxDepth: 4 },
        fc.string(),
        fc.integer(),
        fc.constant(usage),
        tie("object"),
        tie("list"),
      ),
      list: fc.array(tie("any"), { maxLength: 3 }),
      object: fc.dictionary(fc.constantFrom("usage", "a", '"usage":', "b}"), tie("any"), { maxKeys: 3 }),
    })).object;
    fc.assert(
      fc.property(value, fc.boolean(), (body, spaced) => {
        const text = JSON.stringify(body, undefined, spaced ? 1 : undefined);
        expect(read(text)).toEqual(chat.readReply(body as Record<string, unknown>).usage);
      }),
    );
  });
});
