import OpenAI from "openai";
import { describe, expect, it } from "vitest";
import { TestGateway, TOKEN, UPSTREAM_KEY } from "../support/gateway.ts";
import { chatReply, chatStream, json, stream } from "../support/scripted-upstream.ts";

const client = (gateway: TestGateway, apiKey: string) =>
  new OpenAI({ apiKey, baseURL: `${gateway.gateway.url}/v1`, maxRetries: 0 });
const TOOLS = [
  { type: "function" as const, function: { name: "look", parameters: { type: "object", properties: {} } } },
];

describe("the openai package, unmodified", () => {
  it("gets its chat completion byte for byte, and the rollout closes into a sealed, signed artifact", async () => {
    const test = await TestGateway.open();
    test.upstream.play(json(chatReply({ content: "Hello." })));
    const { id, apiKey } = await test.openRollout({ task: { id: "greet" } });
    const reply = await client(test, apiKey).chat.completions.create({
      model: "tiny",
      messages: [{ role: "user", content: "Hi" }],
      temperature: 0.5,
    });
    expect(reply.choices[0]!.message.content).toBe("Hello.");
    const [asked] = test.upstream.asked;
    expect(asked!.url).toBe("/v1/chat/completions");
    expect(asked!.headers.authorization).toBe(`Bearer ${UPSTREAM_KEY}`);
    expect(JSON.parse(asked!.body)).toEqual({
      model: "tiny-1",
      messages: [{ role: "user", content: "Hi" }],
      temperature: 0.5,
    });
    const artifact = await test.closed(id);
    expect(artifact).toMatchObject({
      rolloutId: id,
      task: { id: "greet" },
      ending: { kind: "terminal" },
      sampling: { temperature: 0.5 },
      calls: [
        {
          dialect: "openai-chat",
          model: "tiny-1",
          request: { messages: [{ role: "user", content: "Hi" }], parameters: { temperature: 0.5 } },
          response: {
            messages: [{ role: "assistant", content: "Hello." }],
            finishReason: "stop",
            status: 200,
          },
          usage: { promptTokens: 7, completionTokens: 3 },
          costUsd: 13e-6,
        },
      ],
      envelope: { worker: "gateway", callTimes: [{ delivery: "sent" }] },
    });
    expect(artifact.calls[0].request.sentDigest).not.toBe(artifact.calls[0].request.bodyDigest);
    const report = await test.verify();
    expect(report.problems).toEqual([]);
    expect(report.trust).toMatchObject({ trusted: 1 });
  });

  it("streams text and parallel tool calls, recorded as the message that was streamed", async () => {
    const test = await TestGateway.open();
    const deltas = [
      { role: "assistant", content: "Looking" },
      { content: " twice." },
      { tool_calls: [{ index: 0, id: "a", type: "function", function: { name: "look", arguments: "" } }] },
      {
        tool_calls: [{ index: 1, id: "b", type: "function", function: { name: "look", arguments: '{"at"' } }],
      },
      { tool_calls: [{ index: 0, function: { arguments: "{}" } }] },
      { tool_calls: [{ index: 1, function: { arguments: ":2}" } }] },
    ];
    test.upstream.play(stream(chatStream(deltas, "tool_calls")));
    test.upstream.play(json(chatReply({ content: "Done." })));
    const { id, apiKey } = await test.openRollout();
    const openai = client(test, apiKey);
    const first = await openai.chat.completions
      .stream({ model: "tiny", messages: [{ role: "user", content: "Look" }], tools: TOOLS })
      .finalChatCompletion();
    const message = first.choices[0]!.message;
    expect(message.tool_calls).toHaveLength(2);
    await openai.chat.completions.create({
      model: "tiny",
      tools: TOOLS,
      messages: [
        { role: "user", content: "Look" },
        message,
        { role: "tool", tool_call_id: "a", content: "nothing" },
        { role: "tool", tool_call_id: "b", content: "a cat" },
      ],
    });
    const artifact = await test.closed(id);
    expect(artifact.calls[0].response.messages).toEqual([
      {
        role: "assistant",
        content: "Looking twice.",
        tool_calls: [
          { id: "a", type: "function", function: { name: "look", arguments: "{}" } },
          { id: "b", type: "function", function: { name: "look", arguments: '{"at":2}' } },
        ],
      },
    ]);
    expect(artifact.calls[0].request.tools).toEqual(TOOLS);
    expect(artifact.streams[0].steps).toHaveLength(2);
    const { body } = await test.post("/v1/feedback", {
      rollout: id,
      name: "good",
      value: 1,
      idempotencyKey: "k",
    });
    expect(body).toEqual({ added: true });
    expect((await test.verify()).problems).toEqual([]);
    const metrics = await fetch(`${test.gateway.url}/metrics`, { headers: { "x-api-key": TOKEN } });
    expect(await metrics.text()).toContain('rollbook_gateway_drift_total{drift="CLEAN"} 2');
  });

  it("lists models", async () => {
    const test = await TestGateway.open();
    const models = await client(test, TOKEN).models.list();
    expect(models.data.map(({ id }) => id)).toEqual(["tiny"]);
  });
});
