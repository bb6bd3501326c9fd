import { readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import OpenAI from "openai";
import { describe, expect, it } from "vitest";
import { TestGateway, TOKEN, UPSTREAM_KEY } from "../support/gateway.ts";
import {
  chatReply,
  chatStream,
  eventText,
  hangUp,
  json,
  slow,
  stream,
} from "../support/scripted-upstream.ts";

const ASK = { model: "tiny-1", messages: [{ role: "user", content: "Hi" }] };
const CHAT = "/v1/chat/completions";
const good = json(chatReply({ content: "ok" }));

describe("upstream faults", () => {
  it.each([
    ["429", json({ error: { message: "slow down" } }, 429, { "retry-after": "0" })],
    ["408", json("{}", 408)],
    ["500", json("oops", 500)],
    ["501", json("{}", 501)],
    ["529", json("{}", 529)],
    ["a hang-up", hangUp],
  ])("%s is tried again, unseen by the client, and one call is recorded", async (_what, act) => {
    const test = await TestGateway.open();
    test.upstream.play(act, act, good);
    expect(await test.post(CHAT, ASK)).toMatchObject({ status: 200, body: { choices: [{}] } });
    expect(test.upstream.asked).toHaveLength(3);
    expect(await test.calls()).toHaveLength(1);
  });

  it("an error that stays is passed on byte for byte, and the rollout is the provider's failure", async () => {
    const test = await TestGateway.open();
    test.upstream.otherwise = json('{ "error":{"message":"down" } }', 503, { "x-request-id": "abc" });
    const { id, apiKey } = await test.openRollout();
    const reply = await test.post(CHAT, ASK, { authorization: `Bearer ${apiKey}` });
    expect([reply.status, reply.text]).toEqual([503, '{ "error":{"message":"down" } }']);
    expect(reply.headers.get("x-request-id")).toBe("abc");
    expect((await test.closed(id)).ending).toMatchObject({ kind: "failed", owner: "provider" });
  });

  it.each([400, 409])("%i is passed on at once and is nobody's failure", async (status) => {
    const test = await TestGateway.open();
    test.upstream.play(json({ error: { message: "bad" } }, status));
    expect((await test.post(CHAT, ASK)).status).toBe(status);
    expect(test.upstream.asked).toHaveLength(1);
  });

  it("an upstream that hangs up for good is 502, one that does not answer in time is 504", async () => {
    const test = await TestGateway.open({ upstreams: { main: { timeoutMs: 150, retries: 1 } } });
    test.upstream.play(hangUp, hangUp);
    expect(await test.post(CHAT, ASK)).toMatchObject({
      status: 502,
      body: { error: { code: "upstream-failed" } },
    });
    test.upstream.play(slow(good, 3000), slow(good, 3000));
    expect(await test.post(CHAT, ASK)).toMatchObject({
      status: 504,
      body: { error: { code: "upstream-timeout" } },
    });
  });

  it("a breaker answers 503 without asking, and says when to come back", async () => {
    const test = await TestGateway.open({
      upstreams: { main: { retries: 0, breaker: { failures: 2, pauseMs: 60_000 } } },
    });
    test.upstream.otherwise = json("{}", 500);
    for (let i = 0; i < 2; i++) expect((await test.post(CHAT, { ...ASK, seed: i })).status).toBe(500);
    expect(await test.post(CHAT, ASK)).toMatchObject({
      status: 503,
      body: {
        error: {
          code: "upstream-resting",
          message: expect.stringMatching(/fails: it answered 500\. It is paused/),
        },
      },
    });
    expect(test.upstream.asked).toHaveLength(2);
  });

  it("a breaker lets no second call try while the first waits for its retry", async () => {
    const test = await TestGateway.open({
      upstreams: {
        main: { retries: 1, retryBaseMs: 1, retryMaxMs: 5000, breaker: { failures: 1, pauseMs: 1 } },
      },
    });
    test.upstream.play(json("{}", 500), json("{}", 500));
    expect((await test.post(CHAT, ASK)).status).toBe(500);
    await sleep(20);
    test.upstream.play(json("{}", 500, { "retry-after": "1" }), good);
    const trial = test.post(CHAT, { ...ASK, seed: 1 });
    while (test.upstream.asked.length < 3) await sleep(5);
    await sleep(50);
    expect(await test.post(CHAT, { ...ASK, seed: 2 })).toMatchObject({
      status: 503,
      body: { error: { code: "upstream-resting" } },
    });
    expect((await trial).status).toBe(200);
    expect(test.upstream.asked).toHaveLength(4);
  });

  it("one prompt that the upstream cannot answer, however often it is sent, does not stop the others", async () => {
    const test = await TestGateway.open({
      upstreams: { main: { retries: 2, retryBaseMs: 1, breaker: { failures: 3, pauseMs: 60_000 } } },
    });
    test.upstream.otherwise = json('{"error":"this prompt"}', 500);
    for (let i = 0; i < 4; i++)
      expect(await test.post(CHAT, ASK)).toMatchObject({ status: 500, text: '{"error":"this prompt"}' });
    test.upstream.otherwise = good;
    expect((await test.post(CHAT, { ...ASK, seed: 1 })).status).toBe(200);
  });

  it("a stream cut in the middle reaches the client as a cut, and is recorded as one, with what had come", async () => {
    const test = await TestGateway.open();
    test.upstream.play(
      stream(chatStream([{ content: "a" }, { content: "b" }, { content: "c" }]), { cutAfter: 2 }),
    );
    const { id, apiKey } = await test.openRollout();
    const client = new OpenAI({ apiKey, baseURL: `${test.gateway.url}/v1`, maxRetries: 0 });
    const parts: string[] = [];
    const read = async () => {
      const chunks = await client.chat.completions.create({
        ...ASK,
        stream: true,
      } as OpenAI.ChatCompletionCreateParamsStreaming);
      for await (const chunk of chunks) parts.push(chunk.choices[0]?.delta.content ?? "");
    };
    await expect(read()).rejects.toThrow();
    expect(parts).toEqual(["a", "b"]);
    const artifact = await test.closed(id);
    expect(artifact.calls[0].response.messages).toEqual([{ content: "ab" }]);
    expect(artifact.ending).toMatchObject({ kind: "failed", owner: "provider" });
    expect(artifact.envelope.callTimes[0].delivery).toBe("aborted");
  });

  it("malformed events pass as they are and do not stop the record", async () => {
    const test = await TestGateway.open();
    const events = [
      "data: {not json\n\n",
      ": comment\n\n",
      "garbage\n",
      ...chatStream([{ content: "x" }]),
      "data: after\n\n",
    ];
    test.upstream.play(stream(events));
    const { text } = await test.post(CHAT, { ...ASK, stream: true });
    expect(text).toBe(events.map(eventText).join(""));
    const [call] = await test.calls();
    expect(call!.response.finishReason).toBe("stop");
  });

  it("a reply that is no JSON passes byte for byte and is recorded as what it is", async () => {
    const test = await TestGateway.open();
    const text = "<html>\ud83d".toWellFormed();
    test.upstream.play(json(text));
    expect((await test.post(CHAT, ASK)).text).toBe(text);
    expect(await test.calls()).toHaveLength(1);
    expect((await test.verify()).problems).toEqual([]);
  });

  it("what JSON cannot carry exactly is repaired in the record, never in what passes", async () => {
    const test = await TestGateway.open();
    const nest = (depth: number) => `${"[".repeat(depth)}${"]".repeat(depth)}`;
    const deep = nest(400);
    const reply = `{"choices":[{"message":{"role":"assistant","content":"\\ud800","x":1e999,"deep":${deep}},"finish_reason":"stop"}]}`;
    test.upstream.play(json(reply));
    const body = `{"model":"tiny-1","messages":[{"role":"user","content":"\\udc00"},{"role":"user","content":${deep}}],"seed":12345678901234567890}`;
    expect((await test.post(CHAT, body)).text).toBe(reply);
    expect(test.upstream.asked[0]!.body).toBe(body);
    const [recorded, ...others] = await test.calls();
    expect(others).toEqual([]);
    // Both bodies are kept byte for byte.
    const digests = [recorded!.request.bodyDigest!, recorded!.response.bodyDigest!];
    expect(recorded!.bodies).toEqual(digests);
    for (const [i, text] of [body, reply].entries())
      expect(Buffer.from((await test.book.get(digests[i]!))!.bytes).toString()).toBe(text);
    expect((await test.verify()).problems).toEqual([]);
    test.upstream.play(json(`{"choices":[{"message":{"role":"assistant","content":${nest(20_000)}}}]}`));
    const tooDeep = `{"model":"tiny-1","messages":[{"role":"user","content":${nest(20_000)}}]}`;
    expect((await test.post(CHAT, tooDeep)).body.error.code).toBe("too-deep");
    expect((await test.post(CHAT, ASK)).status).toBe(200);
    expect((await test.calls()).filter(({ bodies }) => bodies !== undefined)).toHaveLength(2);
  });

  it("a huge reply is streamed through without being held, and one beyond the limit is cut", async () => {
    const test = await TestGateway.open({ limits: { responseBytes: 9_000_000 } });
    const large = JSON.stringify(chatReply({ content: "x".repeat(8_000_000) }));
    test.upstream.play(json(large), json(chatReply({ content: "x".repeat(10_000_000) })));
    expect((await test.post(CHAT, ASK)).text).toBe(large);
    await expect(test.post(CHAT, ASK)).rejects.toThrow();
    expect(await test.calls()).toHaveLength(2);
  });
});

describe("bad clients", () => {
  it.each([
    ["no JSON", "{", 400],
    ["no object", "[]", 400],
    ["no messages", '{"model":"tiny"}', 400],
    ["an unknown path", undefined, 404],
  ])("%s is refused with the reason", async (_what, body, status) => {
    const test = await TestGateway.open();
    const reply = body === undefined ? await test.post("/v1/nothing", {}) : await test.post(CHAT, body);
    expect(reply.status).toBe(status);
    expect(reply.body.error.message).not.toBe("");
    expect(reply.headers.get("x-should-retry")).toBe("false");
    expect(test.upstream.asked).toHaveLength(0);
  });

  it("a body or a header beyond its limit is refused", async () => {
    const test = await TestGateway.open({ limits: { requestBytes: 1000, headerBytes: 2048 } });
    expect((await test.post(CHAT, { ...ASK, x: "y".repeat(2000) })).status).toBe(413);
    expect((await test.post(CHAT, ASK, { "x-long": "y".repeat(4000) })).status).toBe(431);
  });

  it("a client that leaves in the middle stops the upstream; the call is recorded as 499, aborted", async () => {
    const test = await TestGateway.open();
    const events = chatStream(Array.from({ length: 200 }, () => ({ content: "word " })));
    test.upstream.play(stream(events, { gapMs: 20 }));
    const { id, apiKey } = await test.openRollout();
    const stop = new AbortController();
    const response = await fetch(test.gateway.url + CHAT, {
      method: "POST",
      headers: { authorization: `Bearer ${apiKey}` },
      body: JSON.stringify({ ...ASK, stream: true }),
      signal: stop.signal,
    });
    await response.body!.getReader().read();
    stop.abort();
    await sleep(100);
    const artifact = await test.closed(id);
    expect(artifact.calls[0].response.status).toBe(499);
    expect(artifact.envelope.callTimes[0].delivery).toBe("aborted");
    expect(artifact.ending).toEqual({ kind: "cancelled" });
  });

  it("a request that stops in the middle of its body leaves nothing behind", async () => {
    const test = await TestGateway.open();
    const socket = connect(test.gateway.port, "127.0.0.1");
    socket.write(
      `POST ${CHAT} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer ${TOKEN}\r\ncontent-length: 100\r\n\r\n{`,
    );
    await sleep(50);
    socket.destroy();
    await sleep(50);
    expect(test.upstream.asked).toHaveLength(0);
    expect(await test.calls()).toHaveLength(0);
  });
});

describe("a journal that cannot be written", () => {
  it("delivers nothing, opens nothing, and is told by /healthz", async () => {
    const test = await TestGateway.open();
    test.upstream.otherwise = json(chatReply({ content: "ok" }));
    const health = async () => {
      const response = await fetch(`${test.gateway.url}/healthz`);
      return [response.status, await response.json()];
    };
    expect(await health()).toEqual([200, { ok: true }]);
    rmSync(join(test.root, "journal"), { recursive: true });
    await expect(test.post(CHAT, ASK)).rejects.toThrow();
    expect(await health()).toEqual([503, { ok: false, records: false, seals: true }]);
    for (const [path, body] of [["/v1/rollouts", { id: "next" }] as const, [CHAT, ASK] as const])
      expect(await test.post(path, body)).toMatchObject({
        ...{ status: 503, body: { error: { code: "cannot-record" } } },
      });
    expect(test.upstream.asked).toHaveLength(1);
    expect(test.logs.join()).toContain("could not be recorded");
    await expect(test.gateway.close(100)).rejects.toThrow("an earlier write to the journal failed");
    await test.book.close();
    await test.start();
    expect(await health()).toEqual([200, { ok: true }]);
    expect((await test.post(CHAT, ASK)).status).toBe(200);
  });
});

describe("names that are no encoding", () => {
  it.each(["/v1/rollouts/%ZZ/close", "/r/%ZZ/v1/chat/completions"])(
    "%s is unknown, not a failure",
    async (path) => {
      const test = await TestGateway.open();
      expect((await test.post(path, ASK)).body.error.code).not.toBe("internal");
      const feedback = { call: "%ZZ.0", name: "good", value: 1, idempotencyKey: "k" };
      expect((await test.post("/v1/feedback", feedback)).status).toBe(404);
    },
  );
});

function diskOf({ root }: TestGateway): string {
  return readdirSync(root, { recursive: true, encoding: "utf8" })
    .map((name) => join(root, name))
    .filter((path) => statSync(path).isFile())
    .map((path) => readFileSync(path, "latin1"))
    .join("");
}

describe("secrets", () => {
  it("reach neither disk nor log: keys, tokens, and what the configuration names", async () => {
    const test = await TestGateway.open({ redact: ["\\d{3}-\\d{2}-\\d{4}"] });
    test.upstream.play(json(chatReply({ content: `your key is ${UPSTREAM_KEY}` })), hangUp, hangUp, hangUp);
    const foreign = "sk-key-of-another-provider";
    const content = `my number is 123-45-6789, my token ${TOKEN}`;
    const { text } = await test.post(
      CHAT,
      { ...ASK, messages: [{ role: "user", content }] },
      { "x-api-key": foreign },
    );
    expect(text).toContain(UPSTREAM_KEY);
    expect(test.upstream.asked[0]!.body).toContain("123-45-6789");
    expect(JSON.stringify(test.upstream.asked[0]!.headers)).not.toContain(foreign);
    await test.post(CHAT, ASK);
    // The journal holds everything of an open rollout. The book holds everything of the others.
    const open = await test.openRollout();
    test.upstream.play(json(chatReply({ content: "ok", note: UPSTREAM_KEY })));
    const escaped = `{"model":"tiny","messages":[{"role":"user","content":"\\u0031${"23-45-6789"}"}]}`;
    await test.post(CHAT, escaped, { authorization: `Bearer ${open.apiKey}` });
    const sealed = await test.openRollout();
    await test.post(CHAT, ASK, { authorization: `Bearer ${sealed.apiKey}` });
    await test.closed(sealed.id, { finalState: { env: { KEY: UPSTREAM_KEY } } });
    await test.stop();
    const disk = diskOf(test);
    // The open rollout's call: the journal holds its reply in normalised form, because a secret in it was redacted.
    expect(disk).toContain('"messages":[{"role":"assistant","content":"ok"');
    for (const secret of [UPSTREAM_KEY, TOKEN, foreign, "123-45-6789", "23-45-6789"]) {
      expect(disk.includes(secret), secret).toBe(false);
      expect(test.logs.join("").includes(secret), secret).toBe(false);
    }
    expect(disk).toContain("[redacted]");
    await test.start();
  });

  const NUMBER = "123-45-6789";
  const withSecrets = () =>
    TestGateway.open(
      { redact: ["\\d{3}-\\d{2}-\\d{4}", "\\b6789\\b"] },
      // A redaction hook of the embedding program: it hides a name.
      { redact: (value) => (typeof value === "string" ? value.replaceAll("Eve Adams", "somebody") : value) },
    );

  it("in the words of a closing and of feedback are redacted, before the sealing and after", async () => {
    const test = await withSecrets();
    test.upstream.otherwise = good;
    const { id, basePath } = await test.openRollout();
    await test.post(basePath + CHAT, ASK);
    const said = `Eve Adams, ${NUMBER}, ${UPSTREAM_KEY}, ${TOKEN}`;
    const feedback = { rollout: id, name: "good", value: 1, source: said };
    await test.post("/v1/feedback", { ...feedback, idempotencyKey: "before" });
    // The replacement is longer than a short secret. A message of maximal length must still be valid after redaction.
    const ending = { kind: "failed", owner: "agent", message: said.padEnd(4096, " 6789") };
    const artifact = await test.closed(id, { ending });
    expect(artifact.ending.message).toMatch(/^somebody, \[redacted\], \[redacted\], \[redacted\]/);
    await test.post("/v1/feedback", { ...feedback, idempotencyKey: "after" });
    expect((await test.feedback()).map(({ source }) => source)).toEqual(
      Array(2).fill("somebody, [redacted], [redacted], [redacted]"),
    );
    await test.stop();
    const disk = diskOf(test);
    for (const secret of ["Eve Adams", NUMBER, UPSTREAM_KEY, TOKEN])
      expect(disk.includes(secret), secret).toBe(false);
    await test.start();
  });

  it.each(["Eve Adams", NUMBER, UPSTREAM_KEY, TOKEN])("in names are refused: %s", async (secret) => {
    const test = await withSecrets();
    test.upstream.otherwise = good;
    const { id, basePath } = await test.openRollout();
    const name = `x-${secret}`;
    const outcome = { rollout: id, name: "good", value: 1, idempotencyKey: "k" };
    const bodies: [string, object, string][] = [
      ["/v1/rollouts", { id: name }, "id"],
      ["/v1/rollouts", { environment: `env@${name}` }, "environment"],
      ["/v1/rollouts", { task: { id: name } }, "task.id"],
      ["/v1/rollouts", { group: name }, "group"],
      ["/v1/rollouts", { run: { worker: name, attempt: 1 } }, "run.worker"],
      ["/v1/rollouts", { run: { worker: "w", attempt: 1, claim: name } }, "run.claim"],
      [`/v1/rollouts/${id}/close`, { scores: [{ name, value: 1 }] }, "scores.0.name"],
      ["/v1/feedback", { ...outcome, name }, "name"],
      ["/v1/feedback", { ...outcome, idempotencyKey: name }, "idempotencyKey"],
      [basePath + CHAT, { ...ASK, model: name }, "model"],
    ];
    for (const [path, body, field] of bodies) {
      const reply = await test.post(path, body);
      expect([reply.status, reply.body.error.code], field).toEqual([400, "secret-in-name"]);
      expect(reply.body.error.message).toContain(`${field}: holds`);
      expect(reply.text).not.toContain(secret);
    }
    await test.stop();
    expect(diskOf(test).includes(secret)).toBe(false);
    await test.start();
  });
});
