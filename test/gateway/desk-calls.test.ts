import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { TestGateway, TOKEN } from "../support/gateway.ts";
import { type Act, chatReply, chatStream, hangUp, json, stream } from "../support/scripted-upstream.ts";

const CHAT = "/v1/chat/completions";
const ASK = { model: "tiny", messages: [{ role: "user", content: "Hi" }] };
const good = json(chatReply({ content: "ok" }));
const words = chatStream(["a", "b", "c"].map((content) => ({ content })));

/** Digests of the calls of a closed rollout. */
async function callDigests(test: TestGateway, id: string): Promise<unknown> {
  const report = await test.post(`/v1/rollouts/${id}/close`);
  const content = (await test.book.get(report.body.content))!;
  return (JSON.parse(Buffer.from(content.bytes).toString()) as { calls: unknown }).calls;
}

describe("a call at the desk", () => {
  it.each<[string, Act, object, number]>([
    ["a whole reply", good, {}, 200],
    ["a stream", stream(words), { stream: true }, 200],
    ["an error of the upstream", json({ error: { message: "no" } }, 400), {}, 400],
    ["an upstream that hangs up", hangUp, {}, 502],
  ])("gives and records the same as one over HTTP: %s", async (_what, act, more, status) => {
    const test = await TestGateway.open();
    test.upstream.otherwise = act;
    const body = { ...ASK, ...more };
    const [near, far] = [await test.openRollout(), await test.openRollout()];
    const { apiKey } = near;
    const direct = await test.gateway.desk.call({ path: CHAT, apiKey, body: JSON.stringify(body) });
    const posted = await test.post(far.basePath + CHAT, body);
    expect([direct.status, posted.status]).toEqual([status, status]);
    expect(direct.body.toString()).toBe(posted.text);
    const sent = test.upstream.asked.map(({ headers, body: asked }) => [headers["content-type"], asked]);
    expect(sent[0]).toEqual(sent.at(-1));
    expect(await callDigests(test, near.id)).toEqual(await callDigests(test, far.id));
  });

  it.each([
    ["an unknown key", { apiKey: "rb-r.0", body: JSON.stringify(ASK), path: CHAT }, 401],
    ["a body that is no JSON", { apiKey: TOKEN, body: "{", path: CHAT }, 400],
    ["a path that calls no model", { apiKey: TOKEN, body: "{}", path: "/v1/feedback" }, 404],
    ["a body beyond the limit", { apiKey: TOKEN, body: "x".repeat(2_000), path: CHAT }, 413],
    ["more than is held at a time", { apiKey: TOKEN, body: "x".repeat(900), path: CHAT }, 503],
  ])("is refused as over HTTP: %s", async (_what, call, status) => {
    const test = await TestGateway.open({ limits: { requestBytes: 1_000, inFlightBytes: 800 } });
    test.upstream.otherwise = good;
    for (let i = 0; i < 3; i++) expect((await test.gateway.desk.call(call)).status).toBe(status);
    expect(test.upstream.asked).toEqual([]);
    // Refused calls hold no bytes.
    const small = { apiKey: TOKEN, body: JSON.stringify(ASK), path: CHAT };
    expect((await test.gateway.desk.call(small)).status).toBe(200);
  });

  it("that is aborted ends its upstream and is recorded as left", async () => {
    const test = await TestGateway.open();
    test.upstream.otherwise = () => {};
    const { id, apiKey } = await test.openRollout();
    const stop = new AbortController();
    const call = { path: CHAT, apiKey, body: JSON.stringify(ASK), signal: stop.signal };
    const asked = test.gateway.desk.call(call);
    await expect.poll(() => test.upstream.asked.length).toBe(1);
    stop.abort(new Error("enough"));
    await expect(asked).rejects.toThrow("enough");
    await expect(test.gateway.desk.call(call)).rejects.toThrow("enough");
    const { calls } = await test.closed(id);
    expect(calls.map((each: { response: object }) => each.response)).toMatchObject([{ status: 499 }]);
  });

  it("is waited for by a stop, and cut when its time is over; later ones are refused", async () => {
    const test = await TestGateway.open();
    const call = { path: CHAT, apiKey: TOKEN, body: JSON.stringify(ASK) };
    test.upstream.play((request, response) => void sleep(50).then(() => good(request, response)));
    test.upstream.otherwise = () => {};
    const answered = test.gateway.desk.call(call);
    await expect.poll(() => test.upstream.asked.length).toBe(1);
    const cut = expect(test.gateway.desk.call(call)).rejects.toThrow("broke off");
    await expect.poll(() => test.upstream.asked.length).toBe(2);
    const stopped = test.gateway.close(10_000, 300);
    expect((await test.gateway.desk.call(call)).status).toBe(503);
    expect((await answered).status).toBe(200);
    await Promise.all([stopped, cut]);
    const artifacts = await test.artifacts();
    expect(artifacts.map(({ calls: [each] }) => each.response.status).sort()).toEqual([200, 499]);
    expect(test.logs).toEqual([]);
  });
});
