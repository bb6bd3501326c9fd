import { readdirSync } from "node:fs";
import { request } from "node:http";
import { connect } from "node:net";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { Admission } from "../../src/collect/receipt.ts";
import { TestGateway, TOKEN } from "../support/gateway.ts";
import { chatReply, json } from "../support/scripted-upstream.ts";

const CHAT = "/v1/chat/completions";
const ASK = { model: "tiny", messages: [{ role: "user", content: "Hi" }] };
const good = json(chatReply({ content: "ok" }));
const authorization = `Bearer ${TOKEN}`;

/** A POST over its own connection. The client ignores a disconnect. */
function send(test: TestGateway, path: string, body: object): Promise<void> {
  return new Promise((over) => {
    const headers = { authorization, "content-type": "application/json", connection: "close" };
    const sent = request(test.gateway.url + path, { method: "POST", headers });
    sent.on("error", () => {}).on("response", (response) => response.resume());
    sent.on("close", over).end(JSON.stringify(body));
  });
}

function segmentsOf({ root }: TestGateway): string[] {
  return readdirSync(join(root, "journal", "gateway")).filter((name) => name.endsWith(".log"));
}

describe("a stop", () => {
  it("records the calls that it cuts and seals those of no rollout; a start at once finds nothing to do", async () => {
    const test = await TestGateway.open();
    test.upstream.otherwise = () => {};
    const calls = Array.from({ length: 3 }, () => send(test, CHAT, ASK));
    await expect.poll(() => test.upstream.asked.length).toBe(3);
    await test.gateway.close(10_000, 1);
    expect(segmentsOf(test)).toEqual([]);
    await test.book.close();
    await test.start();
    await Promise.all(calls);
    expect(test.gateway.recovered).toEqual([]);
    expect((await test.artifacts()).map(({ calls: [call] }) => call.response.status)).toEqual([
      499, 499, 499,
    ]);
    test.upstream.otherwise = good;
    for (let i = 0; i < 3; i++) expect((await test.post(CHAT, ASK)).status).toBe(200);
    await test.restart();
    expect(await test.artifacts()).toHaveLength(6);
    expect(test.logs).toEqual([]);
  });

  it("does not wait for an embedding that never comes, and counts no call for it", async () => {
    let waiting = 0;
    const embed = (_: string, signal: AbortSignal) => {
      waiting++;
      return new Promise<undefined>((done) => signal.addEventListener("abort", () => done(undefined)));
    };
    const test = await TestGateway.open({ routes: { auto: ["tiny"] } }, { embed });
    const asking = { ...ASK, model: "auto" };
    const calls = [send(test, CHAT, asking), send(test, "/v1/route", asking)];
    await expect.poll(() => waiting).toBe(2);
    await test.gateway.close(10_000, 1);
    await Promise.all(calls);
    expect(test.upstream.asked).toEqual([]);
    await test.book.close();
    await test.start();
    expect(test.gateway.recovered).toEqual([]);
  });

  it("seals what was answered a moment before, also where replies do not wait for the disk", async () => {
    const test = await TestGateway.open({ record: "async" });
    test.upstream.otherwise = good;
    await send(test, CHAT, ASK);
    await test.gateway.close(10_000, 1);
    expect(segmentsOf(test)).toEqual([]);
    expect(await test.artifacts()).toHaveLength(1);
    await test.book.close();
    await test.start();
    expect(test.logs).toEqual([]);
  });

  it("ends calls that never hear of their client's end: those that wait behind others on a connection", async () => {
    const test = await TestGateway.open();
    test.upstream.otherwise = () => {};
    const { host, port } = test.gateway;
    const client = connect(port, host).on("error", () => {});
    const body = JSON.stringify(ASK);
    const head = `POST ${CHAT} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: ${authorization}\r\ncontent-length: ${body.length}`;
    client.write(`${head}\r\n\r\n${body}`.repeat(2));
    await expect.poll(() => test.upstream.asked.length).toBe(2);
    await test.gateway.close(10_000, 1);
    expect(await test.artifacts()).toHaveLength(2);
    await test.book.close();
    await test.start();
    expect(test.logs).toEqual([]);
  });

  it("waits for outcomes on their way to the book, also when those who brought them are cut off", async () => {
    const test = await TestGateway.open();
    test.upstream.otherwise = good;
    const { id, basePath } = await test.openRollout();
    await test.post(basePath + CHAT, ASK);
    await test.closed(id);
    // After the restart no seal worker runs that the stop would wait for.
    await test.restart();
    const grade = (k: number) => ({ rollout: id, name: "good", value: 1, idempotencyKey: `k-${k}` });
    const grading = Array.from({ length: 200 }, (_, k) => send(test, "/v1/feedback", grade(k)));
    await Promise.race(grading);
    await test.gateway.close(10_000, 1);
    await Promise.all(grading);
    await test.book.close();
    await test.start();
    expect((await test.feedback()).length).toBeGreaterThan(0);
    expect(test.logs).toEqual([]);
  });
});

describe("a start that fails", () => {
  it("for its port leaves nothing of what it began open, and the next one goes on", async () => {
    let isBroken = true;
    const admit = (): Admission => {
      if (isBroken) throw new Error("no judge");
      return { outcome: "stored", signals: [], message: "kept" };
    };
    const test = await TestGateway.open({}, { admit });
    test.upstream.otherwise = good;
    await test.post(CHAT, ASK);
    await test.gateway.close();
    expect(segmentsOf(test)).toHaveLength(1);
    isBroken = false;
    const other = await test.openAnother({ worker: "other" });
    const another = test.openAnother({ listen: { port: other.port } });
    await expect(another).rejects.toMatchObject({ code: "cannot-listen" });
    // The failed start has sealed the pending rollout and closed the journal, so no segment is left.
    expect(segmentsOf(test)).toEqual([]);
    await other.close();
    await test.book.close();
    await test.start();
    expect(await test.artifacts()).toHaveLength(1);
    expect(test.gateway.recovered).toEqual([]);
  });
});
