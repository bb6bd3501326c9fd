import { createOpenAI } from "@ai-sdk/openai";
import { generateText, stepCountIs, streamText, tool } from "ai";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { TestGateway } from "../support/gateway.ts";
import { chatReply, chatStream, json, stream } from "../support/scripted-upstream.ts";

const weather = tool({
  description: "the weather",
  inputSchema: z.object({ city: z.string() }),
  execute: async ({ city }) => `rain in ${city}`,
});
const call = (id: string, city: string) => ({
  id,
  type: "function",
  function: { name: "weather", arguments: JSON.stringify({ city }) },
});
/** A response in the public form, written by hand. */
const response = (output: object[]) => ({
  id: "resp_1",
  object: "response",
  created_at: 1,
  status: "completed",
  model: "tiny-1",
  output,
  usage: {
    input_tokens: 5,
    output_tokens: 2,
    total_tokens: 7,
    input_tokens_details: { cached_tokens: 0 },
    output_tokens_details: { reasoning_tokens: 0 },
  },
  incomplete_details: null,
  error: null,
});
const message = (text: string) => ({
  type: "message",
  id: "msg_1",
  status: "completed",
  role: "assistant",
  content: [{ type: "output_text", text, annotations: [] }],
});

describe("the ai package (Vercel AI SDK), unmodified", () => {
  it("runs an agent of several steps with parallel tools over chat completions: one rollout, all turns CLEAN", async () => {
    const test = await TestGateway.open();
    const tools = { tool_calls: [call("a", "Oslo"), call("b", "Rome")] };
    test.upstream.play(json(chatReply({ content: null, ...tools })), json(chatReply({ content: "Wet." })));
    const { id, apiKey } = await test.openRollout();
    const openai = createOpenAI({ apiKey, baseURL: `${test.gateway.url}/v1` });
    const { text, steps } = await generateText({
      model: openai.chat("tiny"),
      prompt: "Weather?",
      tools: { weather },
      stopWhen: stepCountIs(3),
    });
    expect([text, steps.length]).toEqual(["Wet.", 2]);
    const artifact = await test.closed(id);
    expect(artifact.calls).toHaveLength(2);
    expect(artifact.calls[1].request.messages.map(({ role }: { role: string }) => role)).toEqual([
      "user",
      "assistant",
      "tool",
      "tool",
    ]);
    expect(artifact.envelope.callTimes.map(({ delivery }: { delivery: string }) => delivery)).toEqual([
      "sent",
      "sent",
    ]);
    expect(artifact.ending).toEqual({ kind: "terminal" });
  });

  it("streams over chat completions", async () => {
    const test = await TestGateway.open();
    test.upstream.play(
      stream(chatStream([{ role: "assistant", content: "a" }, { content: "b" }]), { gapMs: 5 }),
    );
    const { id, basePath } = await test.openRollout();
    const openai = createOpenAI({
      apiKey: "gateway-token-for-tests",
      baseURL: `${test.gateway.url}${basePath}/v1`,
    });
    const parts: string[] = [];
    for await (const part of streamText({ model: openai.chat("tiny"), prompt: "Hi" }).textStream)
      parts.push(part);
    expect(parts).toEqual(["a", "b"]);
    const artifact = await test.closed(id);
    expect(artifact.calls[0].response.messages).toEqual([{ role: "assistant", content: "ab" }]);
  });

  it("speaks the responses API, whole and streamed", async () => {
    const test = await TestGateway.open();
    const events = [
      { type: "response.created", response: { ...response([]), status: "in_progress" } },
      { type: "response.output_item.added", output_index: 0, item: { ...message(""), content: [] } },
      {
        type: "response.output_text.delta",
        item_id: "msg_1",
        output_index: 0,
        content_index: 0,
        delta: "Hel",
      },
      {
        type: "response.output_text.delta",
        item_id: "msg_1",
        output_index: 0,
        content_index: 0,
        delta: "lo.",
      },
      { type: "response.output_item.done", output_index: 0, item: message("Hello.") },
      { type: "response.completed", response: response([message("Hello.")]) },
    ].map((data) => ({ event: data.type, data }));
    test.upstream.play(json(response([message("Hi.")])), stream(events));
    const { id, apiKey } = await test.openRollout();
    const openai = createOpenAI({ apiKey, baseURL: `${test.gateway.url}/v1` });
    expect((await generateText({ model: openai.responses("tiny"), prompt: "Hi" })).text).toBe("Hi.");
    let streamed = "";
    for await (const part of streamText({ model: openai.responses("tiny"), prompt: "Hey" }).textStream)
      streamed += part;
    expect(streamed).toBe("Hello.");
    const artifact = await test.closed(id);
    expect(artifact.calls.map(({ dialect }: { dialect: string }) => dialect)).toEqual([
      "openai-responses",
      "openai-responses",
    ]);
    expect(artifact.calls[1].response).toMatchObject({
      messages: [message("Hello.")],
      finishReason: "completed",
    });
    expect(artifact.calls[1].usage).toEqual({ promptTokens: 5, completionTokens: 2, cachedTokens: 0 });
    expect((await test.verify()).problems).toEqual([]);
  });
});
