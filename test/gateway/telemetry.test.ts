import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { openGateway } from "../../src/book/collect/index.ts";
import type { LocalUpstream } from "../../src/collect/gateway/index.ts";
import { newKeyPem, signerFromPem } from "../../src/contract/index.ts";
import { OtlpReceiver } from "../support/otlp-receiver.ts";
import { echoModels } from "../support/routed-gateway.ts";

const KEY = "sk-upstream-key-for-tests";
const OTLP_KEY = "otlp-key-for-tests";
const TOKEN = "gateway-token-for-tests";
const DIGEST = expect.stringMatching(/^sha256:[0-9a-f]{64}$/);
const CALLER = { trace: "4bf92f3577b34da6a3ce929d0e0e4736", span: "00f067aa0ba902b7" };

async function watched(env: Record<string, string>, models: LocalUpstream = echoModels) {
  const root = mkdtempSync(join(tmpdir(), "rollbook-telemetry-"));
  onTestFinished(() => rmSync(root, { recursive: true, force: true }));
  const lines: string[] = [];
  const signer = signerFromPem(newKeyPem());
  const gateway = await openGateway({
    ...{ book: root, local: { models }, log: (line: string) => lines.push(line) },
    identity: () => ({ signer, trusts: (key: string) => key === signer.publicKey }),
    env: { UPSTREAM_KEY: KEY, GATEWAY_TOKEN: TOKEN, ...env },
    config: {
      ...{ listen: { port: 0 }, tokensEnv: ["GATEWAY_TOKEN"] },
      upstreams: { models: { baseUrl: "local:models", retries: 0, keyEnv: "UPSTREAM_KEY" } },
      models: {
        small: { upstream: "models", model: "small-1", price: { prompt: 1, completion: 2 } },
        broken: { upstream: "models" },
      },
      routes: { auto: ["broken", "small"] },
    },
  });
  let isOpen = true;
  const close = async () => {
    if (isOpen) await gateway.close();
    isOpen = false;
  };
  onTestFinished(close);
  const post = (path: string, body: object, headers: Record<string, string> = {}) =>
    fetch(gateway.url + path, {
      ...{ method: "POST", body: JSON.stringify(body) },
      headers: { "content-type": "application/json", authorization: `Bearer ${TOKEN}`, ...headers },
    });
  const call = async (model: string, headers: Record<string, string> = {}) => {
    const messages = [{ role: "user", content: "a private question" }];
    const reply = await post("/v1/chat/completions", { model, messages }, headers);
    return { status: reply.status, text: await reply.text() };
  };
  const metrics = async () => {
    const headers = { authorization: `Bearer ${TOKEN}` };
    return (await fetch(`${gateway.url}/metrics`, { headers })).text();
  };
  return { gateway, lines, close, post, call, metrics };
}

describe("a gateway with an OTLP endpoint", () => {
  it("exports a span of every call and of their rollout, in one trace, with what was chosen, used and sealed", async () => {
    const receiver = await OtlpReceiver.open();
    const { post, call, close } = await watched({
      OTEL_EXPORTER_OTLP_ENDPOINT: `${receiver.url}/`,
      OTEL_EXPORTER_OTLP_HEADERS: `x-otlp-key=${OTLP_KEY},x-tenant=a%20b`,
      OTEL_SERVICE_NAME: "agents",
      OTEL_RESOURCE_ATTRIBUTES: "deployment.environment.name=test,service.name=not-this",
    });
    const within = { "x-rollbook-rollout": "run-1" };
    await post("/v1/rollouts", { id: "run-1", task: { id: "greet" } });
    await call("auto", within);
    await call("broken", within);
    const report = (await (await post("/v1/rollouts/run-1/close", {})).json()) as Record<string, string>;
    await close();

    expect(receiver.received[0]!.headers).toMatchObject({ "x-otlp-key": OTLP_KEY, "x-tenant": "a b" });
    expect(receiver.resource).toEqual({
      ...{ "service.name": "agents", "deployment.environment.name": "test" },
      ...{ "rollbook.book.id": expect.stringMatching(/^book-/), "rollbook.worker": "gateway" },
    });
    const { spans } = receiver;
    expect(spans.map(({ name }) => name)).toEqual(["chat auto", "chat broken", "invoke_agent"]);
    const [routed, failed, rollout] = spans;
    expect(new Set(spans.map(({ traceId }) => traceId)).size).toBe(1);
    expect([routed!.parentSpanId, failed!.parentSpanId]).toEqual([rollout!.spanId, rollout!.spanId]);
    expect(rollout!.parentSpanId).toBeUndefined();
    expect(new Set(spans.map(({ spanId }) => spanId)).size).toBe(3);
    expect(routed).toMatchObject({ kind: 3 });
    expect(routed!.status).toBeUndefined();
    expect(routed!.attributes).toEqual({
      ...{ "gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai", "gen_ai.system": "openai" },
      ...{ "gen_ai.request.model": "auto", "gen_ai.response.model": "small-1" },
      ...{ "gen_ai.usage.input_tokens": 10n, "gen_ai.usage.output_tokens": 1n },
      ...{ "gen_ai.response.finish_reasons": ["stop"], "http.response.status_code": 200n },
      ...{ "rollbook.rollout.id": "run-1", "rollbook.call": 0n, "rollbook.upstream": "models" },
      ...{ "rollbook.outcome": "answered", "rollbook.cost_usd": 0.000012 },
      ...{ "rollbook.first_byte_ms": expect.any(Number), "rollbook.model.revision.id": "small-1" },
      ...{ "rollbook.model.revision.digest": DIGEST, "rollbook.route.revision.digest": DIGEST },
      ...{ "rollbook.route.candidate": "small", "rollbook.route.candidates": 2n },
      ...{ "rollbook.route.family": "gateway.first-in-list", "rollbook.route.reason": "only-candidate" },
      ...{ "rollbook.route.revision.id": expect.stringMatching(/^first-in-list-/) },
      ...{ "rollbook.route.probability": 1, "rollbook.route.failed": ["broken"] },
    });
    expect(failed).toMatchObject({
      status: { code: 2 },
      attributes: { "error.type": "503", "rollbook.outcome": "provider-failed", "rollbook.call": 1n },
    });
    expect(rollout!.attributes).toMatchObject({
      ...{ "gen_ai.operation.name": "invoke_agent", "rollbook.task.id": "greet" },
      ...{ "rollbook.rollout.calls": 2n, "rollbook.rollout.input_tokens": 10n },
      "rollbook.rollout.content.digest": report.content,
      "rollbook.rollout.envelope.digest": report.envelope,
    });
  });

  it("exports no message, reply, key or token, also where content is asked for and an upstream repeats its key", async () => {
    const receiver = await OtlpReceiver.open();
    const leaking: LocalUpstream = async () =>
      Response.json({
        ...{ id: KEY, object: "chat.completion", created: 1, model: KEY, usage: { prompt_tokens: 1 } },
        choices: [
          { index: 0, message: { role: "assistant", content: "a private reply" }, finish_reason: KEY },
        ],
      });
    const { call, close, metrics, lines } = await watched(
      {
        OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${receiver.url}/v1/traces`,
        OTEL_EXPORTER_OTLP_TRACES_HEADERS: `authorization=Bearer%20${OTLP_KEY}`,
        OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT: "true",
      },
      leaking,
    );
    expect((await call("small")).status).toBe(200);
    const told = (await metrics()) + lines.join("\n");
    await close();
    expect(receiver.received[0]!.headers.authorization).toBe(`Bearer ${OTLP_KEY}`);
    expect(receiver.spans[0]!.attributes).toMatchObject({ "gen_ai.response.finish_reasons": ["other"] });
    const sent = receiver.received.map(({ body }) => body).join("\n");
    for (const secret of ["private", KEY, TOKEN, OTLP_KEY]) {
      expect(sent).not.toContain(secret);
      expect(told).not.toContain(secret);
    }
  });

  it("continues the trace of a caller, links it to the rollout, and exports nothing of one that is not sampled", async () => {
    const receiver = await OtlpReceiver.open();
    const { post, call, close } = await watched({ OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url });
    const within = { "x-rollbook-rollout": "run-1" };
    const from = (flags: string) => ({
      ...within,
      traceparent: `00-${CALLER.trace}-${CALLER.span}-${flags}`,
    });
    await post("/v1/rollouts", { id: "run-1" });
    await call("small", from("01"));
    await call("small", from("00"));
    await call("small", { ...within, traceparent: "00-not-a-trace-01" });
    await call("small");
    await post("/v1/rollouts/run-1/close", {});
    await close();
    const { spans } = receiver;
    const rollout = spans.find(({ name }) => name === "invoke_agent")!;
    const { traceId, spanId } = rollout;
    const calls = spans.filter((each) => each !== rollout);
    expect(calls).toMatchObject([
      { traceId: CALLER.trace, parentSpanId: CALLER.span, links: [{ traceId, spanId }] },
      { traceId, parentSpanId: spanId, attributes: { "rollbook.call": 2n } },
      { traceId: expect.not.stringMatching(traceId), attributes: { "rollbook.call": 0n } },
    ]);
    expect(calls[1]!.links).toBeUndefined();
    expect(calls[2]).not.toHaveProperty("parentSpanId");
  });

  it("answers calls as ever while the endpoint is down, counts what it drops, and stops in time", async () => {
    const receiver = await OtlpReceiver.open();
    const { url } = receiver;
    await receiver.close();
    const { call, metrics, close, lines } = await watched({ OTEL_EXPORTER_OTLP_ENDPOINT: url });
    for (let i = 0; i < 5; i++) expect((await call("small")).status).toBe(200);
    expect(await metrics()).toContain("rollbook_telemetry_queued_spans 5\n");
    const before = performance.now();
    await close();
    expect(performance.now() - before).toBeLessThan(5000);
    expect(lines.filter((line) => line.startsWith("OpenTelemetry"))).toEqual([
      expect.stringMatching(/takes no spans: .*ECONNREFUSED/),
      "OpenTelemetry: 5 spans were dropped since the start",
    ]);
  });
});

describe("a gateway without one", () => {
  it.each([
    {},
    { OTEL_EXPORTER_OTLP_ENDPOINT: "" },
    { OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:1", OTEL_SDK_DISABLED: "true" },
    { OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:1", OTEL_TRACES_EXPORTER: "none" },
  ])("exports nothing and says nothing of it: %o", async (env) => {
    const { call, metrics, close, lines } = await watched(env);
    await call("small");
    expect(await metrics()).not.toContain("rollbook_telemetry");
    await close();
    expect(lines).toEqual([expect.stringContaining("made a new book")]);
  });
});
