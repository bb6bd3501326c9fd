import { setTimeout as sleep } from "node:timers/promises";
import OpenAI from "openai";
import { describe, expect, it } from "vitest";
import type { LocalUpstream } from "../../src/collect/gateway/index.ts";
import { type TestGateway as Opened, TestGateway } from "../support/gateway.ts";
import { chatReply, chatStream, eventText } from "../support/scripted-upstream.ts";

const ASK = { model: "tiny", messages: [{ role: "user" as const, content: "Hi" }] };
const CHAT = "/v1/chat/completions";

/** A gateway with a function as its only upstream. */
function gatewayBefore(serve: LocalUpstream, settings: object = {}): Promise<Opened> {
  const main = { baseUrl: "local:sim", ...settings };
  return TestGateway.open({ upstreams: { main } }, { local: { sim: serve } });
}

function events(deltas: readonly object[], { gapMs = 0, bytes = 0 } = {}): Response {
  const lines = chatStream(deltas).map((each) => eventText(each));
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      const line = lines.shift();
      if (line === undefined) return controller.close();
      await sleep(gapMs);
      controller.enqueue(Buffer.from(`: ${" ".repeat(bytes)}\n\n${line}`));
    },
  });
  return new Response(body, { headers: { "content-type": "text/event-stream" } });
}

describe("a local upstream", () => {
  it("answers as one over the wire does, gets path, key and alias, and is recorded", async () => {
    const asked: { url: string; key: string | null; body: unknown }[] = [];
    const test = await gatewayBefore(async (request) => {
      const key = request.headers.get("authorization");
      asked.push({ url: new URL(request.url).pathname, key, body: await request.json() });
      return Response.json(chatReply({ content: "Hello" }));
    });
    const { id, apiKey } = await test.openRollout();
    const client = new OpenAI({ baseURL: `${test.gateway.url}/v1`, apiKey });
    const reply = await client.chat.completions.create(ASK);
    expect(reply.choices[0]!.message.content).toBe("Hello");
    expect(asked).toEqual([
      { url: CHAT, key: "Bearer sk-upstream-key-for-tests", body: { ...ASK, model: "tiny-1" } },
    ]);
    const artifact = await test.closed(id);
    expect(artifact.calls[0]).toMatchObject({
      model: "tiny-1",
      response: { messages: [{ content: "Hello" }] },
    });
    expect(test.upstream.asked).toEqual([]);
  });

  it("streams as it speaks, larger than any buffer", async () => {
    const deltas = Array.from({ length: 40 }, (_, i) => ({ content: `${i} ` }));
    const test = await gatewayBefore(() => events(deltas, { bytes: 64 * 1024 }));
    const { apiKey } = await test.openRollout();
    const client = new OpenAI({ baseURL: `${test.gateway.url}/v1`, apiKey });
    let text = "";
    for await (const chunk of await client.chat.completions.create({ ...ASK, stream: true }))
      text += chunk.choices[0]?.delta.content ?? "";
    expect(text).toBe(deltas.map(({ content }) => content).join(""));
  });

  it("that throws is tried again; one that goes on throwing is 502, and the words say why", async () => {
    let calls = 0;
    const test = await gatewayBefore(() => {
      if (++calls !== 2) throw new Error("no weights");
      return Response.json(chatReply({ content: "ok" }));
    });
    expect((await test.post(CHAT, ASK)).status).toBe(200);
    const failed = await test.post(CHAT, ASK);
    expect(failed).toMatchObject({ status: 502, body: { error: { code: "upstream-failed" } } });
    expect(failed.text).toContain("no weights");
  });

  it("that does not answer in time, or stops speaking, is late like any other", async () => {
    const never = new Promise<Response>(() => {});
    const silent = await gatewayBefore(() => never, { timeoutMs: 50, retries: 0 });
    expect((await silent.post(CHAT, ASK)).status).toBe(504);
    const stuck = await gatewayBefore(() => events([{ content: "a" }, { content: "b" }], { gapMs: 200 }), {
      timeoutMs: 50,
      retries: 0,
    });
    const { id, apiKey } = await stuck.openRollout();
    await expect(stuck.post(CHAT, ASK, { authorization: `Bearer ${apiKey}` })).rejects.toThrow();
    expect((await stuck.closed(id)).ending).toMatchObject({ kind: "failed", owner: "provider" });
  });

  it("hears when the client leaves", async () => {
    let heard = () => {};
    const left = new Promise<void>((resolve) => {
      heard = resolve;
    });
    const test = await gatewayBefore(
      (request) =>
        new Promise<Response>((_, reject) => {
          request.signal.addEventListener("abort", () => {
            heard();
            reject(request.signal.reason);
          });
        }),
    );
    const { apiKey } = await test.openRollout();
    const stop = new AbortController();
    const asked = fetch(test.gateway.url + CHAT, {
      method: "POST",
      headers: { authorization: `Bearer ${apiKey}` },
      body: JSON.stringify(ASK),
      signal: stop.signal,
    });
    setTimeout(() => stop.abort(), 50);
    await expect(asked).rejects.toThrow();
    await left;
  });

  it("that nobody gave is refused at the start", async () => {
    await expect(TestGateway.open({ upstreams: { main: { baseUrl: "local:sim" } } })).rejects.toThrow(
      /no local upstream of that name/,
    );
  });
});
