import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { dialectNamed } from "../../src/collect/gateway/dialects/index.ts";
import type { Admission } from "../../src/collect/receipt.ts";
import { TestGateway } from "../support/gateway.ts";
import { chatReply, json, slow, stream } from "../support/scripted-upstream.ts";

const CHAT = "/v1/chat/completions";
const ASK = { model: "tiny", messages: [{ role: "user", content: "Hi" }] };
const good = json(chatReply({ content: "ok" }));

const nest = (depth: number) => `${'{"a":'.repeat(depth)}1${"}".repeat(depth)}`;
const ARGUMENTS: readonly [string, string][] = [
  ["a lone surrogate", '{"text":"\\ud83d"}'],
  ["a number that overflows", '{"n":1e999}'],
  ["126 levels", nest(126)],
  ["300 levels", nest(300)],
  ["5000 levels", nest(5000)],
  ["__proto__", '{"__proto__":{"a":1}}'],
  ["methods of objects", '{"role":{"toString":1,"valueOf":2},"type":{"toString":null}}'],
];

describe("content that no canonical JSON can carry", () => {
  it.each(ARGUMENTS)("seals: %s in a reply, a stream, a request and tool arguments", async (_, text) => {
    const test = await TestGateway.open();
    const call = (args: string) =>
      `{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":${args}}}]}`;
    const quoted = JSON.stringify(text);
    const replies = [quoted, text].map((args) =>
      json(`{"choices":[{"message":${call(args)},"finish_reason":"tool_calls"}]}`),
    );
    const delta = `{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":${quoted}}}],"x":${text}}}]}`;
    test.upstream.play(...replies, stream([`data: ${delta}\n\n`, "data: [DONE]\n\n"]), good, good);
    const { id } = await test.openRollout();
    const say = (messages: string) =>
      test.post(
        `/r/${id}${CHAT}`,
        `{"model":"tiny","messages":[${messages}],"stop":${nest(text.length % 90)}}`,
      );
    for (const message of [
      '{"role":"user","content":"a"}',
      call(quoted),
      call(quoted),
      call(quoted),
      `{"role":"user","content":${text}}`,
    ])
      await say(message);
    const { calls } = await test.closed(id);
    expect(calls.length).toBeGreaterThanOrEqual(4);
    expect((await test.verify()).problems).toEqual([]);
    await test.restart();
    expect(test.gateway.recovered).toEqual([]);
  });

  it("keeps the reply as bytes where the message is not exact", async () => {
    const test = await TestGateway.open();
    const reply = '{"choices":[{"message":{"role":"assistant","content":"\\ud83d"},"finish_reason":"stop"}]}';
    test.upstream.play(json(reply));
    const { id } = await test.openRollout();
    await test.post(`/r/${id}${CHAT}`, ASK);
    const [call] = (await test.closed(id)).calls;
    expect(call.bodies).toEqual([call.response.bodyDigest]);
    expect(Buffer.from((await test.book.get(call.bodies[0]))!.bytes).toString()).toBe(reply);
    expect(call.response.messages[0].content).toBe("\ufffd");
  });

  it("is counted in tokens only as far as a token stream takes it", async () => {
    const models = { tiny: { upstream: "main", logprobKind: "model" } };
    const test = await TestGateway.open({ models });
    const { id } = await test.openRollout();
    for (const logprob of [-1e300, 5, -1]) {
      const choice = { message: { role: "assistant", content: "x" }, finish_reason: "stop", token_ids: [3] };
      const logprobs = { content: [{ logprob }] };
      test.upstream.play(json({ prompt_token_ids: [1, 2], choices: [{ ...choice, logprobs }] }));
      await test.post(`/r/${id}${CHAT}`, ASK);
    }
    const { streams, calls } = await test.closed(id);
    expect(calls).toHaveLength(3);
    expect(streams).toMatchObject([{ level: "token", ids: [1, 2, 3] }]);
  });
});

describe("scores that overflow", () => {
  it.each([
    [[{ name: "a", value: 1e300 }]],
    [[{ name: "a", value: 1e200, weight: 1e200 }]],
    [
      [
        { name: "a", value: 3e38 },
        { name: "b", value: 3e38 },
      ],
    ],
  ])("%j are refused when they arrive, and the rollout can be closed without them", async (scores) => {
    const test = await TestGateway.open();
    test.upstream.otherwise = good;
    const { id } = await test.openRollout();
    await test.post(`/r/${id}${CHAT}`, ASK);
    const refused = await test.post(`/v1/rollouts/${id}/close`, { scores });
    expect([refused.status, refused.body.error.code]).toEqual([400, "bad-request"]);
    const feedback = { rollout: id, name: "a", value: 1e300, idempotencyKey: "k" };
    expect((await test.post("/v1/feedback", feedback)).status).toBe(400);
    expect((await test.closed(id)).scores).toEqual([]);
  });
});

it("20 000 tool calls in one stream are put together in a moment", () => {
  const accumulator = dialectNamed("openai-chat").accumulate();
  const before = process.cpuUsage();
  for (let turn = 0; turn < 3; turn++)
    for (let index = 0; index < 20_000; index++)
      accumulator.push(
        "message",
        { choices: [{ index: 0, delta: { tool_calls: [{ index, function: { arguments: "x" } }] } }] },
        "",
      );
  const [message] = accumulator.finish().reply.messages as { tool_calls: { function: object }[] }[];
  expect(message!.tool_calls).toHaveLength(20_000);
  expect(
    message!.tool_calls.every((call) => (call.function as { arguments: string }).arguments === "xxx"),
  ).toBe(true);
  expect(process.cpuUsage(before).user / 1000).toBeLessThan(3000);
});

describe("sealing", () => {
  /** A judge that waits until `release` is called. */
  function heldJudge() {
    let release = () => {};
    const released = new Promise<void>((done) => {
      release = done;
    });
    const admission: Admission = { outcome: "quarantined", signals: [], message: "" };
    return { release, admit: () => released.then(() => admission) };
  }

  it("does not keep a start from listening, nor a stop from ending in time", async () => {
    const { admit, release } = heldJudge();
    const test = await TestGateway.open({}, { admit });
    test.upstream.otherwise = good;
    expect((await test.post(CHAT, ASK)).status).toBe(200);
    const stopMs = performance.now();
    await test.gateway.close(1500, 100);
    expect(performance.now() - stopMs).toBeLessThan(2500);
    await test.book.close();
    // The start queues the unsealed rollout again, and the judge still waits.
    await test.start();
    expect((await fetch(`${test.gateway.url}/healthz`)).status).toBe(200);
    expect((await test.post(CHAT, ASK)).status).toBe(200);
    expect(await test.artifacts()).toEqual([]);
    release();
    await test.restart();
    expect(await test.artifacts()).toHaveLength(2);
  });

  it("has a bound in time: calls that are left then are kept unread, and the log says so", async () => {
    const test = await TestGateway.open({ limits: { sealMs: 1 } });
    test.upstream.otherwise = json(chatReply({ content: "x".repeat(2_000_000) }));
    const { id } = await test.openRollout();
    for (let i = 0; i < 4; i++) await test.post(`/r/${id}${CHAT}`, ASK);
    const { calls } = await test.closed(id);
    expect(calls).toHaveLength(4);
    expect(calls.at(-1).bodies).toHaveLength(2);
    expect(calls.at(-1).response.messages).toEqual([]);
    expect(test.logs.join("\n")).toContain("were sealed unread");
    expect((await test.verify()).problems).toEqual([]);
  });

  it("has a bound in size: a rollout that takes more gets no more calls, and is truncated by its budget", async () => {
    const test = await TestGateway.open({ limits: { rolloutBytes: 2000 } });
    test.upstream.otherwise = json(chatReply({ content: "x".repeat(3000) }));
    const { id } = await test.openRollout();
    expect((await test.post(`/r/${id}${CHAT}`, ASK)).status).toBe(200);
    const refused = await test.post(`/r/${id}${CHAT}`, ASK);
    expect([refused.status, refused.body.error.code]).toEqual([429, "size-cap"]);
    expect((await test.closed(id)).ending).toEqual({ kind: "truncated", limit: "budget" });
  });
});

describe("bodies in flight", () => {
  it("are bounded in all: a request too many is refused, and taken once another has ended", async () => {
    const test = await TestGateway.open({ limits: { inFlightBytes: 1_000_000 } });
    const large = { ...ASK, messages: [{ role: "user", content: "x".repeat(700_000) }] };
    test.upstream.play(slow(good, 400), good);
    const first = test.post(CHAT, large);
    await expect.poll(() => test.upstream.asked.length).toBe(1);
    const refused = await test.post(CHAT, large);
    expect([refused.status, refused.body.error.code]).toEqual([503, "too-much-in-flight"]);
    expect((await first).status).toBe(200);
    await sleep(20);
    expect((await test.post(CHAT, large)).status).toBe(200);
  });
});

it("a model's name past 512 characters is refused, and not kept", async () => {
  const test = await TestGateway.open();
  const refused = await test.post(CHAT, { ...ASK, model: "m".repeat(513) });
  expect([refused.status, refused.body.error.code]).toEqual([400, "name-too-long"]);
  expect(test.upstream.asked).toEqual([]);
});
