import { connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { TestGateway, TOKEN } from "../support/gateway.ts";
import { type Act, chatReply, chatStream, hangUp, json, stream } from "../support/scripted-upstream.ts";

const CHAT = "/v1/chat/completions";
const ASK = { model: "tiny", messages: [{ role: "user", content: "Hi" }] };
const good = json(chatReply({ content: "ok" }));
const words = (count: number) => chatStream(Array.from({ length: count }, () => ({ content: "word " })));

async function deliveries(test: TestGateway): Promise<Record<string, number>> {
  const page = await fetch(`${test.gateway.url}/metrics`, { headers: { "x-api-key": TOKEN } });
  const found = (await page.text()).matchAll(/^rollbook_gateway_delivery_total\{delivery="(\w+)"\} (\d+)$/gm);
  return Object.fromEntries([...found].map(([, delivery, count]) => [delivery, Number(count)]));
}

describe("a delivery", () => {
  it.each<[string, Act, object, "sent" | "aborted"]>([
    ["a whole reply", good, {}, "sent"],
    ["a stream", stream(words(3)), { stream: true }, "sent"],
    ["an error of the upstream", json({ error: {} }, 400), {}, "sent"],
    ["an answer of our own", hangUp, {}, "sent"],
    ["a stream that the upstream cuts", stream(words(3), { cutAfter: 2 }), { stream: true }, "aborted"],
    ["a reply beyond the limit", json(chatReply({ content: "x".repeat(30_000) })), {}, "aborted"],
  ])("is counted once: %s", async (_what, act, body, delivery) => {
    const test = await TestGateway.open({ limits: { responseBytes: 20_000 } });
    test.upstream.otherwise = act;
    const { basePath } = await test.openRollout();
    const reply = test.post(basePath + CHAT, { ...ASK, ...body });
    if (delivery === "sent") await reply;
    else await expect(reply).rejects.toThrow();
    const counts = { sent: 0, aborted: 0, [delivery]: 1 };
    await expect.poll(() => deliveries(test)).toEqual(counts);
  });

  it("is counted once where the client leaves before the end", async () => {
    const test = await TestGateway.open();
    test.upstream.play(stream(words(200), { gapMs: 20 }));
    const { basePath } = await test.openRollout();
    const stop = new AbortController();
    const response = await fetch(test.gateway.url + basePath + CHAT, {
      method: "POST",
      headers: { authorization: `Bearer ${TOKEN}` },
      body: JSON.stringify({ ...ASK, stream: true }),
      signal: stop.signal,
    });
    await response.body!.getReader().read();
    stop.abort();
    await expect.poll(() => deliveries(test)).toEqual({ sent: 0, aborted: 1 });
  });

  it("is counted once, as aborted, where the client leaves when all is on its way", async () => {
    const test = await TestGateway.open();
    // A reply larger than the socket buffers between gateway and client.
    test.upstream.play(json(chatReply({ content: "x".repeat(20_000_000) })));
    const { basePath } = await test.openRollout();
    const body = JSON.stringify(ASK);
    const socket = connect(test.gateway.port, "127.0.0.1");
    socket.pause();
    const head = `POST ${basePath}${CHAT} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer ${TOKEN}`;
    socket.write(`${head}\r\ncontent-length: ${body.length}\r\n\r\n${body}`);
    await sleep(500);
    socket.destroy();
    await expect.poll(() => deliveries(test)).toEqual({ sent: 0, aborted: 1 });
  });
});
