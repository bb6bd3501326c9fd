import { readdirSync, readFileSync, statSync } from "node:fs";
import { request } from "node:http";
import { join } from "node:path";
import { brotliCompressSync, deflateSync, gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { TestGateway, TOKEN, UPSTREAM_KEY } from "../support/gateway.ts";
import { leaks } from "../support/leaks.ts";
import { type Act, chatReply, json, stream } from "../support/scripted-upstream.ts";

const CHAT = "/v1/chat/completions";
const ASK = { model: "tiny", messages: [{ role: "user", content: "Hi" }] };

function files(root: string): string[] {
  return readdirSync(root, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
}

it("an embeddings endpoint gets prompts of calls and of decisions without secrets", async () => {
  const prompts: string[] = [];
  const embed = async (prompt: string) => {
    prompts.push(prompt);
    return undefined;
  };
  const test = await TestGateway.open({ routes: { auto: ["tiny"] }, redact: ["card \\d+"] }, { embed });
  test.upstream.otherwise = json(chatReply({ content: "ok" }));
  const messages = [{ role: "user", content: `use ${UPSTREAM_KEY} and card 1234 now` }];
  for (const path of [CHAT, "/v1/route"])
    expect((await test.post(path, { model: "auto", messages })).status).toBe(200);
  expect(prompts).toEqual(Array(2).fill("use [redacted] and [redacted] now"));
});

describe("an upstream that echoes its key", () => {
  const key = Buffer.from(`${UPSTREAM_KEY}`);
  const spelled = [UPSTREAM_KEY, key.toString("base64"), UPSTREAM_KEY.replaceAll("-", "%2D")];

  it.each(spelled)("does not give it to the client in an error, nor in a header: %s", async (text) => {
    const test = await TestGateway.open();
    for (const status of [302, 400, 401, 500]) {
      const error = { error: { message: `bad key ${text}`, type: "x" } };
      test.upstream.otherwise = json(error, status, {
        "x-debug": `key ${text}`,
        "x-request-id": "req-12345678",
      });
      for (const [path, body] of [
        [CHAT, ASK],
        ["/v1/messages/count_tokens", ASK],
      ] as const) {
        const reply = await fetch(test.gateway.url + path, {
          ...{ method: "POST", redirect: "manual", body: JSON.stringify(body) },
          headers: { authorization: `Bearer ${TOKEN}`, "content-type": "application/json" },
        });
        expect(reply.status).toBe(status);
        const said = `${JSON.stringify([...reply.headers])}${await reply.text()}`;
        expect(leaks(Buffer.from(said), UPSTREAM_KEY)).toBe(false);
        expect(said).toContain("[redacted]");
        expect(reply.headers.get("x-request-id")).toBe("req-12345678");
      }
    }
    await test.restart();
    for (const file of files(test.root)) expect(leaks(readFileSync(file), UPSTREAM_KEY), file).toBe(false);
    expect((await test.verify()).problems).toEqual([]);
  });

  it.each([
    ["gzip", gzipSync],
    ["X-GZIP", gzipSync],
    ["deflate", deflateSync],
    ["br", brotliCompressSync],
    ["gzip, br", (text: string) => brotliCompressSync(gzipSync(text))],
    ["unheard-of", (text: string) => Buffer.from(text)],
    ["gzip", (text: string) => gzipSync(text).subarray(0, -12)],
    ["gzip", () => gzipSync(Buffer.alloc(50_000_000))],
    ["identity", (text: string) => Buffer.from(text, "utf16le")],
  ] as const)("does not give it to the client in an error that is encoded: %s", async (encoding, encode) => {
    const test = await TestGateway.open();
    test.upstream.otherwise = (response) => {
      const type = { "content-type": "application/json", [`x-${UPSTREAM_KEY}`]: "named" };
      response.writeHead(400, { ...type, "content-encoding": encoding });
      response.end(encode(JSON.stringify({ error: { message: `bad key ${UPSTREAM_KEY}` } })));
    };
    for (const path of [CHAT, "/v1/messages/count_tokens"]) {
      const { status, text, headers } = await test.post(path, ASK);
      expect(status).toBe(400);
      expect(leaks(Buffer.from(`${JSON.stringify([...headers])}${text}`), UPSTREAM_KEY)).toBe(false);
      expect(text).toMatch(/\[redacted\]|cannot be read/);
      expect([null, "identity"]).toContain(headers.get("content-encoding"));
    }
  });

  it("finds none of it on disk after a cut stream of /v1/responses, an attachment and nested arguments", async () => {
    const test = await TestGateway.open();
    const deltas = [...UPSTREAM_KEY].map((delta) => ({
      data: { type: "response.output_text.delta", item_id: "a", output_index: 0, delta },
    }));
    const inner = JSON.stringify({ key: UPSTREAM_KEY }).replaceAll("s", "\\u0073");
    const call = { id: "c", type: "function", function: { name: "f", arguments: inner } };
    test.upstream.play(
      stream(deltas, { cutAfter: deltas.length - 1 }),
      stream(deltas),
      json(chatReply({ content: null, tool_calls: [call] })),
      json(`{"choices":[{"message":{"content":"${UPSTREAM_KEY}"`),
    );
    const { id } = await test.openRollout();
    const at = (path: string, body: object) => test.post(`/r/${id}${path}`, body).catch(() => {});
    await at("/v1/responses", { model: "tiny", input: "x", stream: true });
    await at("/v1/responses", { model: "tiny", input: "x", stream: true });
    const data = Buffer.from(`png ${TOKEN} ${"x".repeat(90)}`).toString("base64");
    const image = { type: "image_url", image_url: { url: `data:image/png;base64,${data}` } };
    await at(CHAT, { ...ASK, messages: [{ role: "user", content: [image] }] });
    await at(CHAT, ASK);
    // Unsealed files must hold no secret either.
    for (const secret of [UPSTREAM_KEY, TOKEN])
      for (const file of files(test.root)) expect(leaks(readFileSync(file), secret), file).toBe(false);
    const { calls } = await test.closed(id);
    expect(calls).toHaveLength(4);
    expect(JSON.stringify(calls)).toContain("[redacted]");
    for (const secret of [UPSTREAM_KEY, TOKEN])
      for (const file of files(test.root)) expect(leaks(readFileSync(file), secret), file).toBe(false);
  });
});

describe("keys of clients", () => {
  it("are not passed on, in headers or in the query", async () => {
    const test = await TestGateway.open();
    test.upstream.otherwise = json(chatReply({ content: "ok" }));
    const headers = {
      ...{ "x-goog-api-key": "foreign-key", "x-auth-token": "foreign-key", cookie: "foreign-key" },
      ...{ "x-amz-security-token": "foreign-key", "Ocp-Apim-Subscription-Key": "foreign-key" },
      ...{ "proxy-authorization": "foreign-key", "api-key": "foreign-key", "X-Vault-Token": "foreign-key" },
      ...{ "idempotency-key": "once", "anthropic-version": "1", "x-stainless-lang": "js" },
    };
    await test.post(`${CHAT}?key=foreign-key&api-version=2&access_token=foreign-key`, ASK, headers);
    const [asked] = test.upstream.asked;
    expect(JSON.stringify(asked)).not.toContain("foreign-key");
    expect(asked!.url).toBe(`${CHAT}?api-version=2`);
    expect(asked!.headers).toMatchObject({ "idempotency-key": "once", "x-stainless-lang": "js" });
  });

  it.each(["short", "1234567"])("under 8 characters are refused at the start: %s", async (key) => {
    const test = await TestGateway.open();
    for (const env of [
      { GATEWAY_TOKEN: TOKEN, UPSTREAM_KEY: key },
      { GATEWAY_TOKEN: key, UPSTREAM_KEY },
      { GATEWAY_TOKEN: "EMPTY", UPSTREAM_KEY },
    ])
      await expect(test.openAnother({ worker: "b" }, { env })).rejects.toThrow("fewer than 8 characters");
  });

  it("that are known placeholders are taken, and are no secrets", async () => {
    const test = await TestGateway.open({}, { env: { GATEWAY_TOKEN: TOKEN, UPSTREAM_KEY: "not-needed" } });
    test.upstream.otherwise = json(chatReply({ content: "that is not-needed" }));
    const { id } = await test.openRollout();
    await test.post(`/r/${id}${CHAT}`, ASK);
    expect(test.upstream.asked[0]!.headers.authorization).toBe("Bearer not-needed");
    expect((await test.closed(id)).calls[0].response.messages[0].content).toBe("that is not-needed");
  });
});

describe("the Host of a request", () => {
  const ask = (test: TestGateway, host: string) =>
    new Promise<number>((done, failed) => {
      const { port } = test.gateway;
      const headers = { host, authorization: `Bearer ${TOKEN}` };
      request({ port, host: "127.0.0.1", path: "/v1/models", headers }, (response) => {
        response.resume();
        done(response.statusCode!);
      })
        .on("error", failed)
        .end();
    });

  it.each([
    ["127.0.0.1", 200],
    ["127.0.0.1:8790", 200],
    ["localhost:1", 200],
    ["[::1]:8790", 200],
    ["Gateway.Internal:80", 200],
    ["evil.example", 421],
    ["127.0.0.1.evil.example:8790", 421],
    ["gateway.internal.evil.example", 421],
    ["10.0.0.1", 421],
  ])("%j is answered with %i on loopback with one name of its own", async (host, status) => {
    const test = await TestGateway.open({ listen: { port: 0, names: ["gateway.internal"] } });
    expect(await ask(test, host)).toBe(status);
  });

  it("may be any address where the gateway listens everywhere, and a name from the list only", async () => {
    const test = await TestGateway.open({ listen: { host: "0.0.0.0", port: 0, names: ["known.example"] } });
    const hosts = ["10.1.2.3:8790", "[fe80::1]", "localhost", "known.example", "other.example"];
    expect(await Promise.all(hosts.map((host) => ask(test, host)))).toEqual([200, 200, 200, 200, 421]);
  });
});

it("packs, journals and databases can be read by their owner alone", async () => {
  const test = await TestGateway.open();
  test.upstream.otherwise = json(chatReply({ content: "ok" }));
  await test.openRollout({ id: "stays" });
  await test.post(`/r/stays${CHAT}`, ASK);
  const { id } = await test.openRollout();
  await test.post(`/r/${id}${CHAT}`, ASK);
  await test.closed(id);
  const holding = files(test.root).filter((file) => /packs|large|journal|\.db/.test(file));
  expect(holding.some((file) => file.includes("packs"))).toBe(true);
  expect(holding.some((file) => file.includes("journal"))).toBe(true);
  expect(holding.some((file) => file.endsWith(".db"))).toBe(true);
  for (const file of holding) expect(statSync(file).mode & 0o077, file).toBe(0);
});

describe("a reply without end", () => {
  const forever: (unit: string, type: string) => Act = (unit, type) => (response) => {
    response.writeHead(200, { "content-type": type });
    const more = () => {
      while (!response.destroyed && response.write(unit));
      if (!response.destroyed) response.once("drain", more);
    };
    more();
  };

  it.each([
    ["of newlines", "\n".repeat(65_536), "text/event-stream"],
    [
      "of events",
      `data: {"choices":[{"index":0,"delta":{"content":"x"}}]}\n\n`.repeat(500),
      "text/event-stream",
    ],
    ["of lines of one event", "data: x\n".repeat(8000), "text/event-stream"],
    ["of one line", "x".repeat(65_536), "text/event-stream"],
    ["of brackets", "[".repeat(65_536), "application/json"],
  ])("%s is cut at the limit, and ends as the provider's failure", async (_, unit, type) => {
    const test = await TestGateway.open({ limits: { responseBytes: 8_000_000 } });
    test.upstream.otherwise = forever(unit, type);
    const { id } = await test.openRollout();
    const before = process.memoryUsage().rss;
    await expect(test.post(`/r/${id}${CHAT}`, { ...ASK, stream: true })).rejects.toThrow();
    expect(process.memoryUsage().rss - before).toBeLessThan(240_000_000);
    expect((await test.closed(id)).ending).toMatchObject({ kind: "failed", owner: "provider" });
  });

  it("that trickles is cut when the time of a call is up", async () => {
    const test = await TestGateway.open({ limits: { callMs: 300 } });
    test.upstream.otherwise = async (response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      while (!response.destroyed) {
        response.write(": still here\n\n");
        await new Promise((done) => setTimeout(done, 20));
      }
    };
    const { id } = await test.openRollout();
    await expect(test.post(`/r/${id}${CHAT}`, { ...ASK, stream: true })).rejects.toThrow();
    expect((await test.closed(id)).ending).toMatchObject({ kind: "failed", owner: "provider" });
  });
});
