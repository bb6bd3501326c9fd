import Anthropic from "@anthropic-ai/sdk";
import { describe, expect, it } from "vitest";
import { TestGateway, TOKEN, UPSTREAM_KEY } from "../support/gateway.ts";
import { json, stream } from "../support/scripted-upstream.ts";

const reply = (content: object[], stop = "end_turn") => ({
  id: "msg_1",
  type: "message",
  role: "assistant",
  model: "claude-test",
  content,
  stop_reason: stop,
  stop_sequence: null,
  usage: { input_tokens: 9, output_tokens: 4, cache_read_input_tokens: 1 },
});
/** Events in the public format, written by hand. */
const event = (type: string, data: object) => ({ event: type, data: { type, ...data } });
const STREAM = [
  event("message_start", {
    message: { ...reply([]), stop_reason: null, usage: { input_tokens: 9, output_tokens: 1 } },
  }),
  event("content_block_start", { index: 0, content_block: { type: "text", text: "" } }),
  event("ping", {}),
  event("content_block_delta", { index: 0, delta: { type: "text_delta", text: "Let me " } }),
  event("content_block_delta", { index: 0, delta: { type: "text_delta", text: "look." } }),
  event("content_block_stop", { index: 0 }),
  event("content_block_start", {
    index: 1,
    content_block: { type: "tool_use", id: "t1", name: "look", input: {} },
  }),
  event("content_block_delta", { index: 1, delta: { type: "input_json_delta", partial_json: '{"at":' } }),
  event("content_block_delta", { index: 1, delta: { type: "input_json_delta", partial_json: '"sea"}' } }),
  event("content_block_stop", { index: 1 }),
  event("content_block_start", {
    index: 2,
    content_block: { type: "tool_use", id: "t2", name: "look", input: {} },
  }),
  event("content_block_stop", { index: 2 }),
  event("message_delta", {
    delta: { stop_reason: "tool_use", stop_sequence: null },
    usage: { output_tokens: 12 },
  }),
  event("message_stop", {}),
];
const TOOLS = [{ name: "look", input_schema: { type: "object" as const } }];

describe("the @anthropic-ai/sdk package, unmodified", () => {
  it.each(["", "/v1"])("finds its messages behind a base URL that ends in %j", async (suffix) => {
    const test = await TestGateway.open({ upstreams: { main: { auth: "x-api-key" } } });
    test.upstream.play(json(reply([{ type: "text", text: "Hello." }])), json({ input_tokens: 9 }));
    const { id, apiKey } = await test.openRollout();
    const client = new Anthropic({ apiKey, baseURL: test.gateway.url + suffix, maxRetries: 0 });
    const ask = { model: "claude-test", messages: [{ role: "user" as const, content: "Hi" }] };
    const message = await client.messages.create({ ...ask, max_tokens: 10, system: "Be brief." });
    expect(message.content).toEqual([{ type: "text", text: "Hello." }]);
    expect(await client.messages.countTokens(ask)).toEqual({ input_tokens: 9 });
    expect(test.upstream.asked.map(({ url }) => url)).toEqual(["/v1/messages", "/v1/messages/count_tokens"]);
    expect(test.upstream.asked[0]!.headers["x-api-key"]).toBe(UPSTREAM_KEY);
    const artifact = await test.closed(id);
    expect(artifact.calls).toHaveLength(1);
    expect(artifact.calls[0]).toMatchObject({
      dialect: "anthropic-messages",
      request: {
        messages: [{ role: "system", content: "Be brief." }, ask.messages[0]],
        parameters: { max_tokens: 10 },
      },
      response: { messages: [{ role: "assistant", content: message.content }], finishReason: "end_turn" },
      usage: { promptTokens: 10, completionTokens: 4, cachedTokens: 1 },
    });
  });

  it("streams text and parallel tool use, and the resent history is recognized", async () => {
    const test = await TestGateway.open();
    test.upstream.play(stream(STREAM), json(reply([{ type: "text", text: "A ship." }])));
    const { id, apiKey } = await test.openRollout();
    const client = new Anthropic({ apiKey, baseURL: test.gateway.url, maxRetries: 0 });
    const first = await client.messages
      .stream({
        model: "claude-test",
        max_tokens: 99,
        tools: TOOLS,
        messages: [{ role: "user", content: "Look" }],
      })
      .finalMessage();
    expect(first.content).toMatchObject([
      { text: "Let me look." },
      { input: { at: "sea" } },
      { id: "t2", input: {} },
    ]);
    await client.messages.create({
      model: "claude-test",
      max_tokens: 99,
      tools: TOOLS,
      messages: [
        { role: "user", content: "Look" },
        { role: "assistant", content: first.content },
        {
          role: "user",
          content: [
            { type: "tool_result", tool_use_id: "t1", content: "a ship" },
            { type: "tool_result", tool_use_id: "t2", content: "sand" },
          ],
        },
      ],
    });
    const artifact = await test.closed(id);
    expect(artifact.calls[0]).toMatchObject({
      request: { tools: TOOLS },
      response: {
        messages: [
          {
            role: "assistant",
            content: [
              { type: "text", text: "Let me look." },
              { type: "tool_use", id: "t1", name: "look", input: { at: "sea" } },
              { type: "tool_use", id: "t2", name: "look", input: {} },
            ],
          },
        ],
        finishReason: "tool_use",
      },
      usage: { promptTokens: 9, completionTokens: 12 },
    });
    const metrics = await fetch(`${test.gateway.url}/metrics`, {
      headers: { authorization: `Bearer ${TOKEN}` },
    });
    expect(await metrics.text()).toContain('rollbook_gateway_drift_total{drift="CLEAN"} 2');
    expect((await test.verify()).problems).toEqual([]);
  });

  it("reads refusals of the gateway as errors of its own kind", async () => {
    const test = await TestGateway.open();
    const client = new Anthropic({ apiKey: "wrong", baseURL: test.gateway.url, maxRetries: 5 });
    const asked = client.messages.create({ model: "m", max_tokens: 1, messages: [] });
    await expect(asked).rejects.toThrow(Anthropic.AuthenticationError);
  });
});
