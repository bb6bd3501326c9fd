import { describe, expect, it } from "vitest";
import type { GatewayEvent } from "../../src/collect/gateway/index.ts";
import { paint } from "../../src/view/format.ts";
import { renderGatewayEvent } from "../../src/view/gateway-view.ts";
import { TestGateway, TOKEN, UPSTREAM_KEY } from "../support/gateway.ts";
import { json } from "../support/scripted-upstream.ts";

const REPLY = json({
  choices: [{ message: { role: "assistant", content: "hi" }, finish_reason: "stop" }],
  usage: { prompt_tokens: 1200, completion_tokens: 2 },
});
const ASKING = { messages: [{ role: "user", content: "a private question" }] };

async function watched(config: object = {}) {
  const events: GatewayEvent[] = [];
  const test = await TestGateway.open(config, { onEvent: (event) => events.push(event) });
  const call = (model: string, apiKey: string) =>
    test.post("/v1/chat/completions", { ...ASKING, model }, { authorization: `Bearer ${apiKey}` });
  return { test, events, call };
}

describe("a gateway that is watched", () => {
  it("tells of every call when it ends, and of nothing that was said in it", async () => {
    const { test, events, call } = await watched();
    test.upstream.play(REPLY);
    const { apiKey } = await test.openRollout({ id: "watched", task: { id: "greet" } });
    await call("tiny", apiKey);
    expect(events).toEqual([
      {
        ...{
          kind: "call",
          atMs: expect.any(Number),
          rollout: "watched",
          call: 0,
          model: "tiny",
          upstream: "main",
        },
        ...{ dialect: "openai-chat", served: "tiny-1", finish: "stop" },
        revision: { id: "tiny-1", digest: expect.stringMatching(/^sha256:[0-9a-f]{64}$/) },
        ...{ status: 200, outcome: "answered", promptTokens: 1200, completionTokens: 2, costUsd: 0.001204 },
        ...{ durationMs: expect.any(Number), firstByteMs: expect.any(Number) },
      },
    ]);
    const text = JSON.stringify(events) + renderGatewayEvent(events[0]!, paint(false));
    for (const secret of ["private", TOKEN, UPSTREAM_KEY]) expect(text).not.toContain(secret);
    expect(renderGatewayEvent(events[0]!, paint(false))).toMatch(
      /^\d\d:\d\d:\d\d 200 watched\.0 tiny at main · 1 200 \+ 2 tokens · \$0\.001204 · \d+ ms · first byte \d+ ms\n$/,
    );
  });

  it("tells of calls that it refuses itself, and its status of a rollout names the last until a call succeeds", async () => {
    const { test, events, call } = await watched({ defaultUpstream: undefined });
    test.upstream.play(REPLY);
    const { apiKey } = await test.openRollout({ id: "lost" });
    const owner = { authorization: `Bearer ${TOKEN}` };
    const status = async () =>
      (await fetch(`${test.gateway.url}/v1/rollouts/lost`, { headers: owner })).json();
    await call("nope", apiKey);
    const message = expect.stringContaining('no model is called "nope"; known: ');
    const refusal = { kind: "refusal", path: "/v1/chat/completions", status: 404, code: "model_not_found" };
    expect(events).toEqual([{ ...refusal, atMs: expect.any(Number), rollout: "lost", message }]);
    expect(renderGatewayEvent(events[0]!, paint(false))).toMatch(
      /^\d\d:\d\d:\d\d 404 refused by the gateway lost model_not_found: no model is called "nope"; known: .*\n$/,
    );
    expect(await status()).toMatchObject({ lastRefusal: expect.stringMatching(/^404 no model is called/) });
    await call("tiny", apiKey);
    expect(await status()).not.toHaveProperty("lastRefusal");
    await call("tiny", "a-wrong-key");
    expect(events.at(-1)).toMatchObject({ kind: "refusal", status: 401, code: "unauthorized" });
    expect(JSON.stringify(events)).not.toContain("a-wrong-key");
  });

  it("tells of failovers as they happen, and why an upstream did not answer", async () => {
    const models = { one: { upstream: "main" }, two: { upstream: "main" } };
    const { test, events, call } = await watched({
      ...{ models, routes: { both: ["one", "two"] } },
      upstreams: { main: { retries: 0 } },
    });
    test.upstream.play(json({ error: { message: "busy" } }, 500), REPLY);
    const { apiKey } = await test.openRollout({ id: "moved" });
    await call("both", apiKey);
    expect(events).toMatchObject([
      { kind: "failover", rollout: "moved", call: 0, from: "one", to: "two", fault: "status 500" },
      { kind: "call", model: "both", candidate: "two", outcome: "answered" },
    ]);
    expect(renderGatewayEvent(events[0]!, paint(false))).toContain(
      "failover moved.0 one → two: status 500\n",
    );
    expect(events[1]).toMatchObject({
      route: { reason: "only-candidate", candidates: 2, probability: 1, failed: ["one"] },
    });
    await test.upstream.close();
    await call("one", apiKey);
    expect(events.at(-1)).toMatchObject({
      outcome: "provider-failed",
      fault: expect.stringContaining("main"),
    });
  });

  it("tells of a rollout when it is closed, with its digests, and of none for a call without a rollout", async () => {
    const { test, events, call } = await watched();
    test.upstream.play(REPLY, REPLY);
    const { apiKey } = await test.openRollout({ id: "done", task: { id: "greet" } });
    await call("tiny", apiKey);
    const { body: report } = await test.post("/v1/rollouts/done/close");
    expect(events.at(-1)).toEqual({
      ...{ kind: "rollout", atMs: expect.any(Number), openedAtMs: expect.any(Number) },
      ...{ rollout: "done", task: "greet", ending: "terminal", calls: 1 },
      ...{ promptTokens: 1200, completionTokens: 2, costUsd: 0.001204 },
      ...{ content: report.content, envelope: report.envelope },
    });
    expect(renderGatewayEvent(events.at(-1)!, paint(false))).toMatch(
      /^\d\d:\d\d:\d\d closed done task greet · 1 call · 1 200 \+ 2 tokens · terminal · [\d.]+ m?s\n$/,
    );
    await call("tiny", TOKEN);
    await test.restart();
    expect(events.slice(2)).toMatchObject([{ kind: "call", single: true }]);
  });

  it("tells no cost of a rollout whose model has no price", async () => {
    const { test, events, call } = await watched({ models: { unpriced: { upstream: "main" } } });
    test.upstream.play(REPLY);
    const { apiKey } = await test.openRollout({ id: "unpriced", task: { id: "greet" } });
    await call("unpriced", apiKey);
    await test.post("/v1/rollouts/unpriced/close");
    expect(events.at(-1)).toMatchObject({ kind: "rollout", calls: 1, promptTokens: 1200 });
    expect(events.at(-1)).not.toHaveProperty("costUsd");
  });

  it("closes a rollout also where its listener fails, and says so in the log", async () => {
    const onEvent = ({ kind }: GatewayEvent) => {
      if (kind === "rollout") throw new Error("no room for events");
    };
    const test = await TestGateway.open({}, { onEvent });
    test.upstream.play(REPLY);
    const { apiKey } = await test.openRollout({ id: "done" });
    const asking = { ...ASKING, model: "tiny" };
    await test.post("/v1/chat/completions", asking, { authorization: `Bearer ${apiKey}` });
    expect(await test.post("/v1/rollouts/done/close")).toMatchObject({ status: 200, body: { calls: 1 } });
    expect(test.logs).toEqual(["a listener failed when rollout done was closed: no room for events"]);
  });

  it("lists what is open by name, to its owner alone", async () => {
    const { test } = await watched();
    const { apiKey } = await test.openRollout({ id: "a", task: { id: "greet" } });
    await test.openRollout({ id: "b" });
    const list = (key: string) =>
      fetch(`${test.gateway.url}/v1/rollouts`, { headers: { authorization: `Bearer ${key}` } });
    const { rollouts } = (await (await list(TOKEN)).json()) as { rollouts: object[] };
    expect(rollouts).toMatchObject([
      { id: "a", task: "greet", calls: 0 },
      { id: "b", task: "unnamed", calls: 0 },
    ]);
    expect((await list(apiKey)).status).toBe(403);
  });
});
