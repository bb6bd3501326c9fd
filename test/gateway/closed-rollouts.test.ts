import { describe, expect, it } from "vitest";
import { systemClock } from "../../src/base/clock.ts";
import { openBook } from "../../src/store/index.ts";
import { TestGateway } from "../support/gateway.ts";
import { chatReply, json } from "../support/scripted-upstream.ts";

const CHAT = "/v1/chat/completions";
const ASK = { model: "tiny", messages: [{ role: "user", content: "Hi" }] };
const outcome = (rollout: string, value = 1) => ({ rollout, name: "good", value, idempotencyKey: "k" });

/** Starts a gateway that fails on any read of the book. */
async function startUnread(test: TestGateway): Promise<void> {
  test.book = await openBook(test.root, { clock: systemClock });
  const unread = () => {
    throw new Error("the book was read");
  };
  Object.assign(test.book, { get: unread, has: unread, scan: unread });
  test.gateway = await test.openAnother({});
}

describe("a start", () => {
  it("reads nothing of the book in its own thread, and finds the rollouts closed before in the catalog", async () => {
    const test = await TestGateway.open();
    test.upstream.otherwise = json(chatReply({ content: "ok" }));
    const [closed, open] = [await test.openRollout(), await test.openRollout()];
    for (const { basePath } of [closed, open]) await test.post(basePath + CHAT, ASK);
    const report = (await test.post(`/v1/rollouts/${closed.id}/close`)).body;
    expect((await test.post("/v1/feedback", outcome(closed.id))).body).toEqual({ added: true });
    await test.stop();
    await startUnread(test);
    expect(test.gateway.recovered).toEqual([open.id]);
    expect((await test.post(`/v1/rollouts/${closed.id}/close`)).body).toEqual(report);
    expect((await test.post("/v1/rollouts", { id: closed.id })).status).toBe(409);
    expect((await test.post(closed.basePath + CHAT, ASK)).status).toBe(503);
    expect((await test.post("/v1/feedback", outcome(closed.id))).body).toEqual({ added: false });
    expect((await test.post("/v1/feedback", outcome(closed.id, 2))).status).toBe(409);
    const call = { call: `${closed.id}.0`, name: "useful", value: 1, idempotencyKey: "call" };
    expect((await test.post("/v1/feedback", call)).body).toEqual({ added: true });
    expect((await test.post("/v1/feedback", { ...call, call: `${closed.id}.1` })).status).toBe(404);
  });

  it("goes on with a rollout whose name one without a call had before", async () => {
    const test = await TestGateway.open();
    test.upstream.otherwise = json(chatReply({ content: "ok" }));
    await test.openRollout({ id: "again" });
    await test.post("/v1/rollouts/again/close");
    const { basePath } = await test.openRollout({ id: "again" });
    await test.post(basePath + CHAT, ASK);
    await test.restart();
    expect((await test.closed("again")).calls).toHaveLength(1);
  });

  it("makes the catalog anew where there is none, and knows what was closed", async () => {
    const test = await TestGateway.open();
    test.upstream.otherwise = json(chatReply({ content: "ok" }));
    const { id, basePath } = await test.openRollout();
    await test.post(basePath + CHAT, ASK);
    const report = (await test.post(`/v1/rollouts/${id}/close`)).body;
    await test.post("/v1/feedback", outcome(id));
    await test.stop();
    test.forgetCatalog();
    await test.start();
    expect((await test.post(`/v1/rollouts/${id}/close`)).body).toEqual(report);
    expect((await test.post("/v1/feedback", outcome(id))).body).toEqual({ added: false });
  });
});
