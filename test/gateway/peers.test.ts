import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import { describe, expect, it, onTestFinished } from "vitest";
import type { Gateway } from "../../src/collect/gateway/index.ts";
import { endingOfError } from "../../src/collect/rollout/agent/failure.ts";
import { freePort } from "../support/free-port.ts";
import { TestGateway, TOKEN } from "../support/gateway.ts";
import { chatReply, chatStream, json, ScriptedUpstream, stream } from "../support/scripted-upstream.ts";

const ASK = { model: "tiny", messages: [{ role: "user" as const, content: "Hi" }] };

function clientOf({ url }: { url: string }, apiKey: string): OpenAI {
  return new OpenAI({ apiKey, baseURL: `${url}/v1`, maxRetries: 0 });
}

/** Two gateways on one book, with the same list of peers. */
async function pair(config: object = {}) {
  const ports = [await freePort(), await freePort()];
  const peers = { a: `http://127.0.0.1:${ports[0]}`, b: `http://127.0.0.1:${ports[1]}` };
  const test = await TestGateway.open({ ...config, worker: "a", listen: { port: ports[0] }, peers });
  const b = await openB();
  function openB(): Promise<Gateway> {
    return test.openAnother({ worker: "b", listen: { port: ports[1] }, peers });
  }
  onTestFinished(() => b.close(5_000, 100).catch(() => {}));
  return { test, a: test.gateway, b, openB };
}

const asOwner = { authorization: `Bearer ${TOKEN}`, "content-type": "application/json" };

async function ask(gateway: { url: string }, path: string, body?: object, headers: object = asOwner) {
  const response = await fetch(gateway.url + path, {
    ...(body === undefined ? {} : { method: "POST", body: JSON.stringify(body) }),
    headers: headers as Record<string, string>,
  });
  return { status: response.status, body: (await response.json()) as Record<string, unknown> };
}

describe("two gateways on one book", () => {
  it("a call at the other gateway is answered and recorded by the owner that the key names", async () => {
    const { test, b } = await pair();
    test.upstream.play(json(chatReply({ content: "4" })), stream(chatStream([{ content: "four" }])));
    const { id, apiKey } = await test.openRollout({ id: "run-1", task: { id: "greet" } });
    expect(apiKey).toMatch(/^rb-run-1@a\.[0-9a-f]{32}$/);
    const { data: reply, response } = await clientOf(b, apiKey).chat.completions.create(ASK).withResponse();
    expect(reply.choices[0]!.message.content).toBe("4");
    expect(response.headers.get("x-rollbook-call")).toBe("run-1.0");
    let text = "";
    for await (const chunk of await clientOf(b, apiKey).chat.completions.create({ ...ASK, stream: true }))
      text += chunk.choices[0]?.delta.content ?? "";
    expect(text).toBe("four");
    const artifact = await test.closed(id);
    expect(artifact).toMatchObject({ rolloutId: "run-1", envelope: { worker: "a" } });
    expect(artifact.calls).toHaveLength(2);
    const { body } = await ask(b, "/v1/rollouts");
    expect(body).toEqual({ rollouts: [] });
  });

  it("Anthropic's client reaches the owner, too: its key travels in another header", async () => {
    const { test, b } = await pair();
    test.upstream.play(
      json({
        id: "m",
        type: "message",
        role: "assistant",
        model: "tiny",
        content: [{ type: "text", text: "4" }],
      }),
    );
    const { apiKey } = await test.openRollout({ id: "run-1" });
    const client = new Anthropic({ baseURL: b.url, apiKey, maxRetries: 0 });
    const reply = await client.messages.create({ ...ASK, max_tokens: 3 });
    expect(reply.content).toMatchObject([{ text: "4" }]);
  });

  it("one budget holds, whichever gateway is asked", async () => {
    const { test, a, b } = await pair();
    test.upstream.otherwise = json(chatReply({ content: "4" }));
    const { apiKey } = await test.openRollout({ id: "run-1", maxTurns: 3 });
    for (const at of [a, b, a]) await clientOf(at, apiKey).chat.completions.create(ASK);
    for (const at of [a, b])
      await expect(clientOf(at, apiKey).chat.completions.create(ASK)).rejects.toMatchObject({
        status: 429,
        code: "turn-cap",
      });
    expect(test.upstream.asked).toHaveLength(3);
  });

  it("open, look at, grade and close a rollout of the other, by its name alone", async () => {
    const { test, a, b } = await pair();
    test.upstream.play(json(chatReply({ content: "4" })));
    await test.openRollout({ id: "run-1" });
    expect(await ask(b, "/v1/rollouts", { id: "run-1" })).toMatchObject({ status: 200 });
    const named = { ...asOwner, "x-rollbook-rollout": "run-1" };
    expect(await ask(b, "/v1/chat/completions", ASK, named)).toMatchObject({ status: 200 });
    expect(await ask(b, "/v1/rollouts/run-1")).toMatchObject({ status: 200, body: { turns: 1 } });
    const grade = { name: "solved", value: 1, idempotencyKey: "g" };
    expect(await ask(b, "/v1/feedback", { ...grade, call: "run-1.0" })).toMatchObject({
      body: { added: true },
    });
    expect(await ask(a, "/v1/feedback", { ...grade, call: "run-1.0" })).toMatchObject({
      body: { added: false },
    });
    expect(await ask(b, "/v1/rollouts/run-1/close", {})).toMatchObject({ status: 200, body: { calls: 1 } });
    expect(await ask(b, "/v1/rollouts", { id: "run-1" })).toMatchObject({ status: 409 });
    expect(await ask(b, "/v1/rollouts/nobodys")).toMatchObject({ status: 404 });
    expect(await test.artifacts()).toHaveLength(1);
  });

  it("an owner that is down is named in a 503, new rollouts go on, and its own go on when it is back", async () => {
    const { test, a, b, openB } = await pair();
    test.upstream.otherwise = json(chatReply({ content: "4" }));
    const { body } = await ask(b, "/v1/rollouts", { id: "of-b" });
    await b.close(2_000, 100);
    const lost = clientOf(a, body.apiKey as string).chat.completions.create(ASK);
    await expect(lost).rejects.toMatchObject({
      status: 503,
      code: "owner-away",
      message: expect.stringContaining("the gateway b, which does not answer"),
    });
    expect(endingOfError(await lost.catch((error) => error))).toMatchObject({ owner: "infrastructure" });
    expect(await ask(a, "/v1/rollouts/of-b/close", {})).toMatchObject({
      status: 503,
      body: { error: { code: "owner-away", message: expect.stringContaining("does not answer: b.") } },
    });
    expect(await ask(a, "/v1/rollouts", { id: "of-a" })).toMatchObject({ status: 201 });
    const back = await openB();
    onTestFinished(() => back.close(5_000, 100));
    const reply = await clientOf(a, body.apiKey as string).chat.completions.create(ASK);
    expect(reply.choices[0]!.message.content).toBe("4");
    expect(test.upstream.asked).toHaveLength(1);
  });

  it("a client that leaves while the owner is looked for asks nothing of it", async () => {
    const peer = await ScriptedUpstream.open();
    onTestFinished(() => peer.close());
    let tell = () => {};
    peer.otherwise = (response, asked) => {
      tell = () => void json({ id: "run-1" })(response, asked);
    };
    const test = await TestGateway.open({ worker: "a", peers: { b: peer.url } });
    const left = new AbortController();
    const close = fetch(`${test.gateway.url}/v1/rollouts/run-1/close`, {
      ...{ method: "POST", body: "{}", headers: asOwner, signal: left.signal },
    });
    await expect.poll(() => peer.asked.length).toBe(1);
    left.abort();
    await expect(close).rejects.toThrow();
    const active = async () => (await fetch(`${test.gateway.url}/metrics`, { headers: asOwner })).text();
    await expect.poll(active).toContain("rollbook_gateway_active_calls 1"); // the metrics request itself
    tell();
    await new Promise((next) => setTimeout(next, 200));
    expect(peer.asked).toHaveLength(1);
  });

  it("a client that leaves the one leaves the owner, which records it", async () => {
    const { test, a, b } = await pair();
    test.upstream.play(() => {}); // never answers
    const { id, apiKey } = await test.openRollout({ id: "run-1" });
    const left = new AbortController();
    const call = clientOf(b, apiKey).chat.completions.create(ASK, { signal: left.signal });
    call.catch(() => {});
    while (test.upstream.asked.length === 0) await new Promise((next) => setTimeout(next, 5));
    left.abort();
    await expect(call).rejects.toThrow();
    const artifact = await test.closed(id);
    expect(artifact.calls).toMatchObject([{ response: { status: 499 } }]);
    const text = await (await fetch(`${a.url}/metrics`, { headers: asOwner })).text();
    expect(text).toContain("rollbook_gateway_active_calls 1"); // the metrics request itself
  });
});

describe("a forwarded request", () => {
  it("is never forwarded again: peers that point at each other's address end in one refusal", async () => {
    const port = await freePort();
    const test = await TestGateway.open({
      ...{ worker: "a", listen: { port }, peers: { b: `http://127.0.0.1:${port}` } },
    });
    const wrong = await test.openAnother({
      worker: "b",
      listen: { port: 0 },
      peers: { a: test.gateway.url },
    });
    onTestFinished(() => wrong.close(5_000, 100));
    const { body } = await ask(wrong, "/v1/rollouts", { id: "of-b" });
    await expect(
      clientOf(test.gateway, body.apiKey as string).chat.completions.create(ASK),
    ).rejects.toMatchObject({ status: 421, code: "wrong-gateway" });
    expect(await ask(test.gateway, "/v1/rollouts/nobodys")).toMatchObject({ status: 404 });
  });

  it("goes to configured addresses only: a key cannot name another, and a forged one is refused", async () => {
    const heard: string[] = [];
    const thief = createServer((request, response) => {
      heard.push(request.headers.authorization ?? "");
      response.end("{}");
    });
    await new Promise<void>((done) => thief.listen(0, "127.0.0.1", done));
    onTestFinished(() => void thief.close());
    const { port } = thief.address() as AddressInfo;
    const { test, a } = await pair();
    const stranger = await test.openAnother({
      worker: `127.0.0.1:${port}`,
      listen: { port: 0 },
      peers: { a: a.url },
    });
    onTestFinished(() => stranger.close(5_000, 100));
    const { body } = await ask(stranger, "/v1/rollouts", { id: "of-stranger" });
    await expect(clientOf(a, body.apiKey as string).chat.completions.create(ASK)).rejects.toMatchObject({
      status: 503,
      code: "unknown-owner",
    });
    const { apiKey } = await test.openRollout({ id: "run-1" });
    const forged = apiKey.replace("@a.", "@b.");
    await expect(clientOf(a, forged).chat.completions.create(ASK)).rejects.toMatchObject({ status: 401 });
    expect(heard).toEqual([]);
  });
});

describe("keys that name no owner", () => {
  it("stay good at the gateway that has peers now, and at the other one", async () => {
    const test = await TestGateway.open({ worker: "a" });
    test.upstream.otherwise = json(chatReply({ content: "4" }));
    const { apiKey } = await test.openRollout({ id: "run-1" });
    expect(apiKey).toMatch(/^rb-run-1\.[0-9a-f]{32}$/);
    const b = await test.openAnother({ worker: "b", peers: { a: test.gateway.url } });
    onTestFinished(() => b.close(5_000, 100));
    for (const at of [test.gateway, b])
      expect(await clientOf(at, apiKey).chat.completions.create(ASK)).toMatchObject({
        object: "chat.completion",
      });
  });
});
