import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Digest } from "../../../base/digest.ts";
import { parseId } from "../../../base/ids.ts";
import {
  type CalledParts,
  decodeCall,
  decodeFacts,
  encodeCall,
  isCall,
  type NewCall,
} from "./journal-call.ts";

const count = fc.nat({ max: 2 ** 31 - 1 });
const amount = fc.double({ min: 0, max: 1e15, noNaN: true });
const bytes = fc.uint8Array({ maxLength: 40 });
const digest = fc.constant(`sha256:${"ab".repeat(32)}` as Digest);
const maybe = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined });

const facts: fc.Arbitrary<NewCall> = fc.record({
  index: count,
  earlier: count,
  dialect: fc.constantFrom("openai-chat", "openai-responses", "openai-completions", "anthropic-messages"),
  status: fc.nat({ max: 999 }),
  outcome: fc.constantFrom("answered", "refused", "provider-failed", "cut", "disconnected"),
  steps: fc.constantFrom([], [{ reason: "ü\n" } as never]),
  stepFamily: maybe(fc.constant(parseId("family"))),
  startedAtMs: amount,
  firstByteMs: maybe(amount),
  durationMs: amount,
  usage: maybe(
    fc.record(
      { promptTokens: count, completionTokens: count, cachedTokens: count },
      { requiredKeys: ["promptTokens", "completionTokens"] },
    ),
  ),
  costUsd: maybe(amount),
  deliveries: fc.array(fc.record({ call: count, delivery: fc.constantFrom("sent", "aborted", "unknown") }), {
    maxLength: 3,
  }),
  sentDigest: maybe(digest),
});
const parts: fc.Arbitrary<CalledParts> = fc.record({
  requestForm: fc.constantFrom("body", "facts"),
  replyForm: fc.constantFrom("json", "sse", "facts", "none"),
  bodyDigest: maybe(digest),
  replyDigest: maybe(digest),
  request: bytes,
  reply: fc.array(bytes, { maxLength: 3 }),
  media: fc.array(bytes, { maxLength: 2 }),
});

describe("a call in the journal", () => {
  it("is given back as it was, whatever it holds", () => {
    const target = { model: "ü", tokenizer: undefined };
    fc.assert(
      fc.property(facts, parts, (call, kept) => {
        const texts = { rollout: Buffer.from("r-1"), target: Buffer.from(JSON.stringify(target)) };
        const payload = Buffer.concat(encodeCall(call, texts, kept).map((part) => Buffer.from(part)));
        const { request, reply, media, ...forms } = kept;
        const known = { ...call, ...forms, rollout: "r-1", target: { model: "ü" } };
        expect(isCall(payload)).toBe(true);
        expect(withoutUndefined(decodeFacts(payload))).toEqual(withoutUndefined(known));
        const whole = decodeCall(payload);
        expect(Buffer.compare(whole.request, Buffer.from(request))).toBe(0);
        expect(Buffer.compare(whole.reply, Buffer.concat(reply))).toBe(0);
        expect(whole.media.map((each) => [...each])).toEqual(media.map((each) => [...each]));
      }),
    );
  });
});

function withoutUndefined(value: object): unknown {
  return Object.fromEntries(Object.entries(value).filter(([, each]) => each !== undefined));
}
