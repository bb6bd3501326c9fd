import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { dialectNamed } from "../dialects/find-dialect.ts";
import { parseBody } from "../wire/read-body.ts";
import { readerOf } from "../wire/reply-reader.ts";
import { plainlyClear, redactText } from "./redact.ts";
import { redactCall } from "./redact-call.ts";

const SECRET = "sk-abc/def+0123";
const secrets = [SECRET, "another-secret"];
const options = { redact: undefined, redactText: redactText(secrets, []) };
const slow = redactCall(options)!;
const fast = redactCall({ ...options, isPlainlyClear: plainlyClear(secrets, []) })!;
const dialect = dialectNamed("openai-chat");

function call(body: string, replies: readonly string[], form: "json" | "sse" = "json") {
  const reader = readerOf(form, dialect);
  for (const each of replies) reader.push(Buffer.from(each));
  return {
    request: () => dialect.readRequest(parseBody(Buffer.from(body)))!,
    body: Buffer.from(body),
    reply: () => reader.finish().reply,
    replyBytes: reader.chunks as Buffer[],
    isWhole: form === "json",
  };
}

const ask = (content: string) => JSON.stringify({ model: "m", messages: [{ role: "user", content }] });
const reply = (content: string) =>
  JSON.stringify({ choices: [{ message: { role: "assistant", content }, finish_reason: "stop" }] });
const escaped = (text: string) =>
  [...text].map((c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`).join("");

describe("looking for secrets without parsing", () => {
  it("finds as much as with it, however a secret is spelled, wherever it stands, in as many pieces as it comes", () => {
    const spelled = fc.constantFrom(SECRET, SECRET.replace("/", "\\/"), escaped(SECRET), SECRET.slice(1));
    const text = fc.array(fc.oneof(spelled, fc.constantFrom("\\n", '\\"', "\\\\", "ü", " ", "x")), {
      maxLength: 4,
    });
    fc.assert(
      fc.property(text, text, fc.nat(200), (asked, said, cut) => {
        const body = ask("@").replace("@", () => asked.join(""));
        const whole = reply("@").replace("@", () => said.join(""));
        const pieces = [whole.slice(0, cut), whole.slice(cut)].filter((piece) => piece !== "");
        expect(fast(call(body, pieces))).toEqual(slow(call(body, pieces)));
      }),
      { numRuns: 300 },
    );
  });

  it("does not trust a stream, whose events may hold a secret in pieces", () => {
    const event = (content: string) =>
      `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content } }] })}\n\n`;
    const events = [event(SECRET.slice(0, 5)), event(SECRET.slice(5)), "data: [DONE]\n\n"];
    const redacted = fast(call(ask("hello"), events, "sse"));
    expect(JSON.stringify(redacted?.reply)).toContain("[redacted]");
  });

  it("is not tried where there is more to look for than words that JSON leaves as they are", () => {
    expect(plainlyClear(secrets, [/\d{3}/])).toBeUndefined();
    expect(plainlyClear(['with"quote-in-it'], [])).toBeUndefined();
    expect(plainlyClear(["mit-Umlaut-ü"], [])).toBeUndefined();
  });
});
