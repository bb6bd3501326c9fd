/** `model: "auto"` with the official clients, unmodified: whole replies, streams and tools. Each choice is logged. */
import { createOpenAI } from "@ai-sdk/openai";
import Anthropic from "@anthropic-ai/sdk";
import { generateText, stepCountIs, streamText, tool } from "ai";
import OpenAI from "openai";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import type { LocalUpstream } from "../../src/collect/gateway/index.ts";
import { routedGateway } from "../support/routed-gateway.ts";
import { chatReply, chatStream, eventText } from "../support/scripted-upstream.ts";

interface Asked {
  readonly model: string;
  readonly stream?: boolean;
  readonly tools?: readonly unknown[];
  readonly messages: readonly { role: string; content: unknown }[];
}

/** Requests the tool until its result is in the messages, then replies with the model's name. Both wire formats are
 *  written by hand. */
const toolModels: LocalUpstream = async (request) => {
  const asked = (await request.json()) as Asked;
  return new URL(request.url).pathname.endsWith("/messages") ? anthropicReply(asked) : openAiReply(asked);
};

function openAiReply({ model, stream = false, tools, messages }: Asked): Response {
  const call = { id: "t-1", type: "function", function: { name: "look", arguments: '{"at":"sea"}' } };
  const isDone = tools === undefined || messages.some(({ role }) => role === "tool");
  const finish = isDone ? "stop" : "tool_calls";
  if (stream) {
    const deltas = isDone
      ? [{ role: "assistant", content: model.slice(0, 2) }, { content: model.slice(2) }]
      : [{ role: "assistant", tool_calls: [{ index: 0, ...call }] }];
    return events(chatStream(deltas, finish));
  }
  const message = isDone ? { content: model } : { content: null, tool_calls: [call] };
  const choice = { index: 0, message: { role: "assistant", ...message }, finish_reason: finish };
  return Response.json(chatReply({}, { model, choices: [choice] }));
}

function anthropicReply({ model, stream = false, tools, messages }: Asked): Response {
  const isDone = tools === undefined || messages.some(({ content }) => Array.isArray(content));
  const block = isDone
    ? { type: "text", text: model }
    : { type: "tool_use", id: "t-1", name: "look", input: { at: "sea" } };
  const stop_reason = isDone ? "end_turn" : "tool_use";
  const usage = { input_tokens: 9, output_tokens: 4 };
  const message = { id: "m", type: "message", role: "assistant", model, content: [block], usage };
  if (!stream) return Response.json({ ...message, stop_reason, stop_sequence: null });
  const empty = isDone ? { type: "text", text: "" } : { ...block, input: {} };
  const delta = isDone
    ? { type: "text_delta", text: model }
    : { type: "input_json_delta", partial_json: '{"at":"sea"}' };
  return events(
    [
      { type: "message_start", message: { ...message, content: [], stop_reason: null } },
      { type: "content_block_start", index: 0, content_block: empty },
      { type: "content_block_delta", index: 0, delta },
      { type: "content_block_stop", index: 0 },
      { type: "message_delta", delta: { stop_reason, stop_sequence: null }, usage },
      { type: "message_stop" },
    ].map((data) => ({ event: data.type, data })),
  );
}

function events(list: readonly { event?: string; data: unknown }[]): Response {
  const body = list.map(eventText).join("");
  return new Response(body, { headers: { "content-type": "text/event-stream" } });
}

interface Client {
  readonly url: string;
  readonly apiKey: string;
  readonly stream: boolean;
}

/** Plays two turns: the first requests the tool. Returns the text of the last reply. */
async function askOpenAi({ url, apiKey, stream }: Client): Promise<string> {
  const client = new OpenAI({ baseURL: `${url}/v1`, apiKey, maxRetries: 0 });
  const tools = [{ type: "function" as const, function: { name: "look", parameters: { type: "object" } } }];
  const messages: OpenAI.ChatCompletionMessageParam[] = [{ role: "user", content: "Look" }];
  const ask = () =>
    stream
      ? client.chat.completions.stream({ model: "auto", messages, tools }).finalChatCompletion()
      : client.chat.completions.create({ model: "auto", messages, tools });
  const [first] = (await ask()).choices;
  expect(first!.finish_reason).toBe("tool_calls");
  const [called] = first!.message.tool_calls!;
  messages.push(first!.message, { role: "tool", tool_call_id: called!.id, content: "a ship" });
  return (await ask()).choices[0]!.message.content!;
}

async function askAnthropic({ url, apiKey, stream }: Client): Promise<string> {
  const client = new Anthropic({ baseURL: url, apiKey, maxRetries: 0 });
  const tools = [{ name: "look", input_schema: { type: "object" as const } }];
  const messages: Anthropic.MessageParam[] = [{ role: "user", content: "Look" }];
  const request = { model: "auto", max_tokens: 99, messages, tools };
  const ask = () =>
    stream ? client.messages.stream(request).finalMessage() : client.messages.create(request);
  const { content } = await ask();
  expect(content).toMatchObject([{ type: "tool_use", input: { at: "sea" } }]);
  messages.push(
    { role: "assistant", content },
    { role: "user", content: [{ type: "tool_result", tool_use_id: "t-1", content: "a ship" }] },
  );
  const [last] = (await ask()).content;
  return last!.type === "text" ? last!.text : "";
}

async function askAi({ url, apiKey, stream }: Client): Promise<string> {
  const request = {
    model: createOpenAI({ baseURL: `${url}/v1`, apiKey }).chat("auto"),
    prompt: "Look",
    stopWhen: stepCountIs(2),
    maxRetries: 0,
    tools: {
      look: tool({ inputSchema: z.object({ at: z.string() }), execute: async () => "a ship" }),
    },
  };
  return stream ? await streamText(request).text : (await generateText(request)).text;
}

describe.each([
  ["openai", askOpenAi],
  ["@anthropic-ai/sdk", askAnthropic],
  ["ai", askAi],
])("%s, unmodified, with model auto", (_name, ask) => {
  test.each([
    ["whole", false],
    ["streamed", true],
  ])(
    "%s replies with tools come from the model that was chosen, and both turns are logged",
    async (_, stream) => {
      const { gateway, post, steps } = await routedGateway(
        { strategy: "epsilon-greedy", exploration: 0.6, seed: 4 },
        { models: toolModels },
      );
      const said = new Map<string, string>();
      for (let i = 0; i < 12; i++) {
        const { body } = await post("/v1/rollouts", { id: `r-${i}` });
        said.set(`r-${i}`, await ask({ url: gateway.url, apiKey: body.apiKey, stream }));
        await post(`/v1/rollouts/r-${i}/close`, {});
      }
      expect(new Set(said.values())).toEqual(new Set(["small", "large"]));
      const logged = await steps();
      expect(logged).toHaveLength(24);
      for (const { candidates } of logged)
        expect(candidates.map(({ id, probability }) => [id, probability])).toEqual([
          ["small", 0.7],
          ["large", 0.3],
        ]);
      for (const { id, turn, candidates, chosen, seen } of logged) {
        expect(seen).toMatchObject({ tools: 1, stream });
        if (turn === 1) expect(candidates[chosen]!.id).toBe(said.get(id));
      }
    },
  );
});
