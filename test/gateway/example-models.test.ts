/** The model servers of examples/, called by OpenAI's own client with streaming. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import OpenAI from "openai";
import type { ChatCompletionChunk, ChatCompletionCreateParamsStreaming } from "openai/resources";
import { describe, expect, it, onTestFinished } from "vitest";
import { startUpstream } from "../../examples/sums/upstream.mjs";

const USAGE = { include_usage: true };

async function chunksOf(baseURL: string, body: Omit<ChatCompletionCreateParamsStreaming, "stream">) {
  const client = new OpenAI({ baseURL, apiKey: "none", maxRetries: 0 });
  const chunks: ChatCompletionChunk[] = [];
  for await (const chunk of await client.chat.completions.create({ ...body, stream: true }))
    chunks.push(chunk);
  return chunks;
}

function textOf(chunks: readonly ChatCompletionChunk[]): string {
  return chunks.map(({ choices }) => choices[0]?.delta.content ?? "").join("");
}

function question(content: string) {
  return { messages: [{ role: "user" as const, content }] };
}

describe("the model server of examples/sums", () => {
  it("streams its answer, with the usage only where it is asked for", async () => {
    const { url, close } = await startUpstream();
    onTestFinished(() => close());
    const plain = await chunksOf(url, { model: "tiny", ...question("What is 2 + 40?") });
    expect(textOf(plain)).toBe("42");
    expect(plain.at(-1)!.choices[0]!.finish_reason).toBe("stop");
    expect(plain.every(({ usage }) => usage === undefined)).toBe(true);
    const counted = await chunksOf(url, { model: "tiny", ...question("2 + 40"), stream_options: USAGE });
    expect(textOf(counted)).toBe("42");
    expect(counted.at(-1)).toMatchObject({ choices: [], usage: { total_tokens: 14 } });
  });

  it("answers only chat requests", async () => {
    const { url, close } = await startUpstream();
    onTestFinished(() => close());
    expect((await fetch(`${url}/models`)).status).toBe(404);
    expect(textOf(await chunksOf(url, { model: "tiny", ...question("2 + 40") }))).toBe("42");
  });

  it("streams a tool call, and the answer from the tool's result", async () => {
    const { url, close } = await startUpstream();
    onTestFinished(() => close());
    const client = new OpenAI({ baseURL: url, apiKey: "none", maxRetries: 0 });
    const tools = [{ type: "function" as const, function: { name: "add", parameters: {} } }];
    const asked = question("What is 2 + 40?");
    const first = await client.chat.completions.stream({ model: "tiny", ...asked, tools }).finalMessage();
    expect(first.tool_calls).toMatchObject([
      { id: "call-1", type: "function", function: { name: "add", arguments: '{"numbers":[2,40]}' } },
    ]);
    const messages = [
      ...asked.messages,
      first,
      { role: "tool" as const, tool_call_id: "call-1", content: "42" },
    ];
    expect(textOf(await chunksOf(url, { model: "tiny", messages, tools }))).toBe("42");
  });
});

describe("the model server of examples/first-project", () => {
  it("streams its answer, with the usage where it is asked for", async () => {
    const server = spawn(process.execPath, ["examples/first-project/model.mjs", "0"]);
    onTestFinished(() => void server.kill());
    const [line] = await once(server.stdout, "data");
    const url = /http\S+/.exec(String(line))![0];
    const chunks = await chunksOf(url, {
      ...{ model: "sim-small", ...question("What is 2 + 40?"), stream_options: USAGE },
    });
    expect(textOf(chunks)).toBe("42");
    expect(chunks.at(-1)).toMatchObject({ choices: [], usage: { total_tokens: 45 } });
  });

  it("refuses a request that is no chat and lives on, and says that its port is in use", async () => {
    const server = spawn(process.execPath, ["examples/first-project/model.mjs", "0"]);
    onTestFinished(() => void server.kill());
    const [line] = await once(server.stdout, "data");
    const url = /http\S+/.exec(String(line))![0];
    const listed = await fetch(`${url}/models`);
    expect([listed.status, await listed.json()]).toMatchObject([
      404,
      { error: { message: "GET /v1/models is not here, only POST /v1/chat/completions" } },
    ]);
    for (const body of ["{", '{"model":"sim-small"}', '{"messages":[{"content":[]}]}'])
      expect((await fetch(`${url}/chat/completions`, { method: "POST", body })).status).toBe(400);
    const { port } = new URL(url);
    const second = spawn(process.execPath, ["examples/first-project/model.mjs", port]);
    const [said] = await once(second.stderr, "data");
    expect(String(said)).toMatch(new RegExp(`^error: port ${port} is in use\\. .*\\n$`));
    expect(textOf(await chunksOf(url, { model: "sim-small", ...question("What is 2 + 40?") }))).toBe("42");
  });
});
