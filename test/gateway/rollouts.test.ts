import { describe, expect, it } from "vitest";
import { manualClock } from "../../src/base/clock.ts";
import { digestJson } from "../../src/base/digest.ts";
import { parseId } from "../../src/base/ids.ts";
import type { Choose } from "../../src/collect/gateway/index.ts";
import { TestGateway, TOKEN } from "../support/gateway.ts";
import { chatReply, chatStream, json, stream } from "../support/scripted-upstream.ts";

const CHAT = "/v1/chat/completions";
const user = (content: string) => ({ role: "user", content });
const ask = (...messages: object[]) => ({
  model: "tiny",
  messages: messages.length === 0 ? [user("Hi")] : messages,
});
const as = ({ apiKey }: { apiKey: string }) => ({ authorization: `Bearer ${apiKey}` });

describe("a rollout", () => {
  it("is named by key, header or path alike", async () => {
    const test = await TestGateway.open();
    test.upstream.otherwise = json(chatReply({ content: "ok" }));
    const opened = await test.openRollout({ id: "run-1", group: "g", seed: "18446744073709551615" });
    await test.post(CHAT, ask(), as(opened));
    await test.post(CHAT, ask(), { "x-rollbook-rollout": "run-1" });
    const { headers } = await test.post(`${opened.basePath}${CHAT}`, ask());
    expect([headers.get("x-rollbook-rollout"), headers.get("x-rollbook-call")]).toEqual(["run-1", "run-1.2"]);
    const artifact = await test.closed("run-1");
    expect(artifact).toMatchObject({ group: "g", seed: "18446744073709551615" });
    expect(artifact.calls).toHaveLength(3);
    expect(test.upstream.asked[2]!.url).toBe(CHAT);
  });

  it.each([
    ["turns", { maxTurns: 2 }, 429, "turn-cap", { kind: "truncated", limit: "turns" }],
    ["money", { budgetUsd: 20e-6 }, 402, "budget-cap", { kind: "truncated", limit: "budget" }],
  ])(
    "that has used its %s is refused, with no retry, and ends truncated",
    async (_what, caps, status, code, ending) => {
      const test = await TestGateway.open();
      test.upstream.otherwise = json(chatReply({ content: "ok" }));
      const opened = await test.openRollout(caps);
      for (let i = 0; i < 2; i++) expect((await test.post(CHAT, ask(), as(opened))).status).toBe(200);
      const refused = await test.post(CHAT, ask(), as(opened));
      expect(refused).toMatchObject({ status, body: { error: { code } } });
      expect(refused.headers.get("x-should-retry")).toBe("false");
      expect((await test.closed(opened.id)).ending).toEqual(ending);
    },
  );

  it("that streams without usage spends an estimate, and its cost is unknown, not 0", async () => {
    const test = await TestGateway.open();
    const events = chatStream([{ content: "ok" }]).filter(
      ({ data }) => !JSON.stringify(data).includes("usage"),
    );
    test.upstream.otherwise = stream(events);
    const opened = await test.openRollout({ budgetUsd: 20e-6 });
    const statuses: number[] = [];
    for (let i = 0; i < 3; i++)
      statuses.push((await test.post(CHAT, { ...ask(), stream: true }, as(opened))).status);
    expect(statuses.slice(0, 1)).toEqual([200]);
    expect(statuses.at(-1)).toBe(402);
    const { calls, ending } = await test.closed(opened.id);
    expect(ending).toEqual({ kind: "truncated", limit: "budget" });
    expect([calls[0].costUsd, calls[0].usage]).toEqual([undefined, undefined]);
  });

  it("names revisions that have a record: of the agent's choice, and of every list of models", async () => {
    const test = await TestGateway.open({ routes: { one: ["tiny"], two: ["tiny", "tiny"] } });
    test.upstream.otherwise = json(chatReply({ content: "ok" }));
    for (const model of ["tiny", "one", "two"]) await test.post(CHAT, { ...ask(), model });
    const { id, apiKey } = await test.openRollout();
    await test.post(CHAT, ask(), as({ apiKey }));
    await test.closed(id);
    const { problems, unrecordedRevisions } = await test.verify();
    expect([problems, unrecordedRevisions]).toEqual([[], []]);
  });

  it("that is paid for shows in every series about calls", async () => {
    const test = await TestGateway.open();
    test.upstream.otherwise = json(chatReply({ content: "ok" }));
    const opened = await test.openRollout();
    await test.post(CHAT, ask(), as(opened));
    await test.closed(opened.id);
    const page = await fetch(`${test.gateway.url}/metrics`, { headers: { "x-api-key": TOKEN } });
    const text = await page.text();
    for (const name of ["calls_total", "tokens_total", "cost_usd_total", "call_seconds_count"])
      expect(Number(new RegExp(`rollbook_gateway_${name}\\{.*\\} (.+)`).exec(text)?.[1])).toBeGreaterThan(0);
  });

  it("that is closed answers 503 with no retry, closes twice alike, and cannot be opened again", async () => {
    const test = await TestGateway.open();
    test.upstream.otherwise = json(chatReply({ content: "ok" }));
    const opened = await test.openRollout();
    await test.post(CHAT, ask(), as(opened));
    const close = () =>
      test.post(`/v1/rollouts/${opened.id}/close`, {
        ending: { kind: "cancelled" },
        scores: [{ name: "s", value: 2 }],
      });
    const first = await close();
    expect((await close()).body).toEqual(first.body);
    expect(first.body).toMatchObject({
      calls: 1,
      ending: { kind: "cancelled" },
      signedBy: test.signer.publicKey,
    });
    const refused = await test.post(CHAT, ask(), as(opened));
    expect([refused.status, refused.headers.get("x-should-retry")]).toEqual([503, "false"]);
    expect((await test.post("/v1/rollouts", { id: opened.id })).status).toBe(409);
    expect((await test.post("/v1/rollouts/none/close")).status).toBe(404);
  });

  it("that is closed refuses other scores and another final state, which would be lost", async () => {
    const test = await TestGateway.open();
    test.upstream.otherwise = json(chatReply({ content: "ok" }));
    const opened = await test.openRollout();
    await test.post(CHAT, ask(), as(opened));
    const close = (body: object) => test.post(`/v1/rollouts/${opened.id}/close`, body);
    const body = { scores: [{ name: "solved", value: 1 }], finalState: { files: 2 } };
    // The second request arrives while the first one is sealed.
    const [first, during] = await Promise.all([close(body), close({ scores: [] })]);
    expect([first.status, during.status]).toEqual([200, 409]);
    for (const same of [body, {}]) expect((await close(same)).body).toEqual(first.body);
    const scored = await close({ scores: [{ name: "solved", value: 0 }] });
    expect([scored.status, scored.body.error.message]).toEqual([
      409,
      expect.stringMatching(/is closed with other scores \(solved 1\), which count\. .* open a new rollout/),
    ]);
    const state = await close({ finalState: { files: 3 } });
    expect([state.status, state.body.error.message]).toEqual([
      409,
      expect.stringContaining("another final state"),
    ]);
  });

  it("opened twice in the same words is one; in other words it is refused; so is a typo", async () => {
    const test = await TestGateway.open();
    await test.openRollout({ id: "x", task: { id: "t" } });
    expect((await test.post("/v1/rollouts", { id: "x", task: { id: "t" } })).status).toBe(200);
    expect((await test.post("/v1/rollouts", { id: "x", task: { id: "u" } })).status).toBe(409);
    expect((await test.post("/v1/rollouts", { idd: "x" })).status).toBe(400);
    expect((await test.post("/v1/rollouts", { id: "a/b" })).status).toBe(400);
  });

  it("may not have the name of single calls for its task, as it would be sealed after its first call", async () => {
    const test = await TestGateway.open();
    const refused = await test.post("/v1/rollouts", { task: { id: "single-call" } });
    expect([refused.status, refused.body.error.message]).toEqual([
      400,
      "the request: task.id: single-call is the gateway's name for calls without a rollout, choose another.",
    ]);
  });

  it("without a call closes into nothing", async () => {
    const test = await TestGateway.open();
    const { id } = await test.openRollout();
    expect((await test.post(`/v1/rollouts/${id}/close`)).body).toEqual({
      id,
      calls: 0,
      ending: { kind: "cancelled" },
    });
  });

  it("without a call is closed all the same: twice alike, 503, no outcome; its name may be used again", async () => {
    const test = await TestGateway.open();
    const rollout = await test.openRollout({ id: "empty" });
    const close = async () => (await test.post("/v1/rollouts/empty/close")).body;
    expect(await close()).toEqual(await close());
    const refused = await test.post(CHAT, ask(), as(rollout));
    expect([refused.status, refused.headers.get("x-should-retry")]).toEqual([503, "false"]);
    const outcome = { rollout: "empty", name: "good", value: 1, idempotencyKey: "k" };
    expect((await test.post("/v1/feedback", outcome)).status).toBe(409);
    const again = await test.openRollout({ id: "empty" });
    expect((await test.post("/v1/feedback", outcome)).status).toBe(409);
    await test.post(CHAT, ask(), as(again));
    expect((await test.post("/v1/feedback", outcome)).body).toEqual({ added: true });
  });

  it("without a call is closed with a note of what is not recorded, also the second time", async () => {
    const test = await TestGateway.open();
    const { id } = await test.openRollout();
    const closing = { scores: [{ name: "solved", value: 1 }], finalState: { done: true } };
    const close = async () => (await test.post(`/v1/rollouts/${id}/close`, closing)).body;
    const first = await close();
    expect(first.discarded).toBe("not recorded, because the rollout has no call: 1 score, a final state");
    expect(await close()).toEqual(first);
  });

  it.each([
    ["a last word", { content: "Done." }, "stop", { kind: "terminal" }],
    ["a full window", { content: "Done" }, "length", { kind: "truncated", limit: "tokens" }],
    [
      "a tool nobody ran",
      { tool_calls: [{ id: "1", type: "function", function: { name: "f", arguments: "{}" } }] },
      "tool_calls",
      { kind: "truncated", limit: "time" },
    ],
  ])("that falls silent after %s is sealed by the idle timeout", async (_what, message, finish, ending) => {
    const clock = manualClock(1_700_000_000_000);
    const test = await TestGateway.open({ rollouts: { idleMs: 60_000 } }, { clock });
    const reply = chatReply(message) as { choices: { finish_reason: string }[] };
    reply.choices[0]!.finish_reason = finish;
    test.upstream.play(json(reply));
    await test.post(CHAT, ask(), as(await test.openRollout()));
    clock.advance(59_999);
    expect(await test.gateway.sealIdle()).toBe(0);
    clock.advance(1);
    expect(await test.gateway.sealIdle()).toBe(1);
    expect((await test.artifacts()).map((each) => each.ending)).toEqual([ending]);
  });

  it("is idle from a restart at the earliest, because its agent could not call before", async () => {
    const clock = manualClock(1_700_000_000_000);
    const test = await TestGateway.open({ rollouts: { idleMs: 60_000 } }, { clock });
    test.upstream.otherwise = json(chatReply({ content: "ok" }));
    const opened = await test.openRollout();
    await test.post(CHAT, ask(), as(opened));
    clock.advance(3_600_000);
    await test.restart();
    clock.advance(59_999);
    expect(await test.gateway.sealIdle()).toBe(0);
    expect((await test.post(CHAT, ask(), as(opened))).status).toBe(200);
    clock.advance(60_000);
    expect(await test.gateway.sealIdle()).toBe(1);
    expect((await test.artifacts()).map(({ calls }) => calls.length)).toEqual([2]);
  });

  it("of a single call is made for a call that belongs to none", async () => {
    const test = await TestGateway.open();
    test.upstream.otherwise = json(chatReply({ content: "ok" }));
    await Promise.all(Array.from({ length: 5 }, () => test.post(CHAT, ask())));
    await test.restart();
    const artifacts = await test.artifacts();
    expect(artifacts.map(({ task, calls }) => [task.id, calls.length])).toEqual(
      Array(5).fill(["single-call", 1]),
    );
    const report = await test.verify();
    expect([report.problems, report.trust]).toMatchObject([[], { trusted: 5 }]);
  });

  it("of a single call that is closed while it streams is sealed once, as it was closed, and takes nothing of others along", async () => {
    const test = await TestGateway.open();
    test.upstream.otherwise = json(chatReply({ content: "ok" }));
    const kept = await test.openRollout({ id: "keep" });
    for (let i = 0; i < 2; i++) await test.post(CHAT, ask(), as(kept));
    test.upstream.play(stream(chatStream([{ content: "a" }, { content: "b" }]), { gapMs: 40 }));
    const reply = await fetch(test.gateway.url + CHAT, {
      method: "POST",
      headers: { authorization: `Bearer ${TOKEN}` },
      body: JSON.stringify({ ...ask(), stream: true }),
    });
    const closing = test.closed(reply.headers.get("x-rollbook-rollout")!, {
      ending: { kind: "cancelled" },
      scores: [{ name: "s", value: 1 }],
    });
    await reply.text();
    expect(await closing).toMatchObject({ ending: { kind: "cancelled" }, scores: [{ name: "s", value: 1 }] });
    await test.restart();
    expect(test.logs).toEqual([]);
    expect(await test.artifacts()).toHaveLength(1);
    expect(test.gateway.recovered).toEqual(["keep"]);
    expect((await test.closed("keep")).calls).toHaveLength(2);
  });

  it("waits with its sealing for calls in progress, and is not to be opened meanwhile", async () => {
    const test = await TestGateway.open();
    let answer: () => void = () => {};
    const told = new Promise<void>((done) => {
      answer = done;
    });
    const slow = stream(chatStream([{ content: "slow" }]), { gapMs: 40 });
    test.upstream.play((response, asked) => told.then(() => slow(response, asked)));
    const opened = await test.openRollout();
    const call = test.post(CHAT, { ...ask(), stream: true }, as(opened));
    await expect.poll(() => test.upstream.asked.length).toBe(1);
    const closing = test.closed(opened.id);
    // A rollout that is being closed accepts no calls, so it cannot be opened again.
    const again = () => test.post("/v1/rollouts", { id: opened.id });
    await expect.poll(async () => (await again()).body.error?.message).toContain("is being closed");
    expect(await again()).toMatchObject({ status: 409, body: { error: { code: "rollout-closed" } } });
    answer();
    const artifact = await closing;
    expect(artifact.calls[0].response.messages).toEqual([{ content: "slow" }]);
    expect((await call).status).toBe(200);
  });

  it("survives a restart: its history, its caps, its outcomes and its proof of receipt", async () => {
    const test = await TestGateway.open();
    test.upstream.play(json(chatReply({ content: "one" })), json(chatReply({ content: "two" })));
    const opened = await test.openRollout({ maxTurns: 2 });
    await test.post(CHAT, ask(), as(opened));
    await test.post("/v1/feedback", { call: `${opened.id}.0`, name: "good", value: 1, idempotencyKey: "a" });
    await test.restart();
    expect(test.gateway.recovered).toEqual([opened.id]);
    await test.post(CHAT, ask(user("Hi"), { role: "assistant", content: "one" }, user("More")), as(opened));
    expect((await test.post(CHAT, ask(), as(opened))).status).toBe(429);
    const artifact = await test.closed(opened.id);
    expect(
      artifact.calls.map((call: { response: { messages: object[] } }) => call.response.messages),
    ).toMatchObject([[{ content: "one" }], [{ content: "two" }]]);
    expect(artifact.envelope.callTimes.map(({ delivery }: { delivery: string }) => delivery)).toEqual([
      "sent",
      "sent",
    ]);
    expect(await test.feedback()).toMatchObject([
      { name: "good", value: 1, call: 0, subject: artifact.contentDigest },
    ]);
    expect((await test.verify()).problems).toEqual([]);
  });
});

describe("feedback", () => {
  it("is added once per key, before or after the sealing, over restarts; and never made up", async () => {
    const test = await TestGateway.open();
    test.upstream.otherwise = json(chatReply({ content: "ok" }));
    const opened = await test.openRollout();
    await test.post(CHAT, ask(), as(opened));
    const grade = (key: string, more: object = {}) =>
      test.post("/v1/feedback", {
        rollout: opened.id,
        name: "good",
        value: 0.5,
        idempotencyKey: key,
        ...more,
      });
    expect((await grade("a")).body).toEqual({ added: true });
    expect((await grade("a")).body).toEqual({ added: false });
    expect((await grade("a", { value: 1 })).status).toBe(409);
    expect(await test.feedback()).toEqual([]);
    const artifact = await test.closed(opened.id);
    expect(artifact.scores).toEqual([]);
    expect(artifact.streams[0].steps[0].reward).toBeNull();
    expect((await grade("b", { rollout: undefined, call: `${opened.id}.0` })).body).toEqual({ added: true });
    await test.restart();
    for (const key of ["a", "b"])
      expect(
        (await grade(key, key === "b" ? { rollout: undefined, call: `${opened.id}.0` } : {})).body,
      ).toEqual({ added: false });
    expect((await grade("c", { rollout: undefined, call: `${opened.id}.7` })).status).toBe(404);
    expect((await grade("c", { rollout: "none" })).status).toBe(404);
    expect((await grade("c", { call: "x.0" })).status).toBe(400);
    expect((await test.feedback()).map(({ idempotencyKey }) => idempotencyKey).sort()).toEqual(["a", "b"]);
  });

  it("is of calls that are recorded or in progress, and of no others", async () => {
    const test = await TestGateway.open({ defaultUpstream: undefined });
    test.upstream.play(stream(chatStream([{ content: "slow" }]), { gapMs: 40 }));
    const opened = await test.openRollout();
    const grade = () =>
      test.post("/v1/feedback", { call: `${opened.id}.0`, name: "good", value: 1, idempotencyKey: "k" });
    expect((await grade()).body.error.code).toBe("unknown-call");
    expect((await test.post(CHAT, { ...ask(), model: "none" }, as(opened))).status).toBe(404);
    expect((await grade()).body.error.code).toBe("unknown-call");
    const call = test.post(CHAT, { ...ask(), stream: true }, as(opened));
    await expect.poll(() => test.upstream.asked.length).toBe(1);
    expect((await grade()).body).toEqual({ added: true });
    expect((await call).headers.get("x-rollbook-call")).toBe(`${opened.id}.0`);
    await test.closed(opened.id);
    expect(await test.feedback()).toMatchObject([{ name: "good", call: 0 }]);
  });

  it("is not for agents: the refusal lists what a rollout's key may do", async () => {
    const test = await TestGateway.open();
    const opened = await test.openRollout();
    for (const path of ["/v1/feedback", "/v1/rollouts", `/v1/rollouts/${opened.id}/close`]) {
      const refused = await test.post(path, {}, as(opened));
      expect(refused.status).toBe(403);
      expect(refused.text).toContain("call models, count tokens, list models and ask for a route");
    }
  });
});

describe("exact tokens", () => {
  const config = {
    models: {
      tiny: {
        upstream: "main",
        capture: { tokens: "vllm" },
        logprobKind: "sampling",
        family: "tiny",
        tokenizer: digestJson("test", "tokenizer"),
        revision: { id: "tiny-r1", digest: digestJson("test", "weights") },
      },
    },
  };
  const reply = (content: string, prompt: number[], ids: number[]) =>
    json({
      ...chatReply({ content }),
      prompt_token_ids: prompt,
      choices: [
        {
          index: 0,
          message: { role: "assistant", content },
          finish_reason: "stop",
          token_ids: ids,
          logprobs: { content: ids.map((id) => ({ token: String(id), logprob: -id / 4 })) },
        },
      ],
    });

  it("are asked for, recorded, and become one stream in which a shared prefix trains once, also over a restart", async () => {
    const test = await TestGateway.open(config);
    test.upstream.play(reply("a", [1, 2], [3, 4]), reply("b", [1, 2, 3, 4, 5], [6]), reply("c", [1, 2], [7]));
    const opened = await test.openRollout();
    await test.post(CHAT, ask(), as(opened));
    expect(JSON.parse(test.upstream.asked[0]!.body)).toMatchObject({
      return_token_ids: true,
      logprobs: true,
    });
    await test.restart();
    await test.post(CHAT, ask(user("Hi"), { role: "assistant", content: "a" }, user("more")), as(opened));
    await test.post(CHAT, ask(), as(opened));
    const artifact = await test.closed(opened.id);
    const revision = config.models.tiny.revision;
    expect(artifact.streams).toEqual([
      {
        ...{
          level: "token",
          family: "tiny",
          logprobKind: "sampling",
          tokenizer: config.models.tiny.tokenizer,
        },
        ids: [1, 2, 3, 4, 5, 6],
        logprobs: [0, 0, -0.75, -1, 0, -1.5],
        mask: [0, 0, 1, 1, 0, 1],
        turns: [0, 0, 1, 1, 1, 2],
        segments: [
          { start: 2, end: 4, call: 0, revision },
          { start: 5, end: 6, call: 1, revision },
        ],
      },
      expect.objectContaining({
        ids: [1, 2, 7],
        mask: [0, 0, 1],
        segments: [{ start: 2, end: 3, call: 2, revision }],
      }),
    ]);
    expect((await test.verify()).problems).toEqual([]);
  });

  it("are put together from streamed chunks", async () => {
    const test = await TestGateway.open(config);
    const chunk = (id: number, more: object = {}) => ({
      data: {
        choices: [
          {
            index: 0,
            delta: { content: "x" },
            token_ids: [id],
            logprobs: { content: [{ token: "x", logprob: -1 }] },
          },
        ],
        ...more,
      },
    });
    test.upstream.play(stream([chunk(8, { prompt_token_ids: [1, 2] }), chunk(9), { data: "[DONE]" }]));
    const opened = await test.openRollout();
    await test.post(CHAT, { ...ask(), stream: true }, as(opened));
    expect((await test.closed(opened.id)).streams).toMatchObject([{ ids: [1, 2, 8, 9], mask: [0, 0, 1, 1] }]);
  });

  it("are absent where the upstream gives none, or gives them in part", async () => {
    const test = await TestGateway.open(config);
    test.upstream.play(
      json(chatReply({ content: "a" })),
      json({ ...chatReply({ content: "b" }), prompt_token_ids: [1] }),
    );
    const opened = await test.openRollout();
    await test.post(CHAT, ask(), as(opened));
    await test.post(CHAT, ask(), as(opened));
    expect((await test.closed(opened.id)).streams.map(({ level }: { level: string }) => level)).toEqual([
      "step",
    ]);
  });
});

describe("routing", () => {
  const revision = { id: parseId("router-r1"), digest: digestJson("test", "router") };
  /** Prefers the last selectable candidate, with odds of 3 to 1 against all the others together. */
  const choose: Choose = ({ candidates }) => {
    const open = candidates.flatMap(({ selectable }, i) => (selectable ? [i] : []));
    const chosen = open.at(-1)!;
    const share = open.length === 1 ? 0 : 0.25 / (open.length - 1);
    const probabilities = candidates.map((_, i) =>
      i === chosen ? 1 - share * (open.length - 1) : open.includes(i) ? share : 0,
    );
    return {
      decision: { chosen, probabilities, reason: "policy", confidence: 1 },
      family: "router",
      revision,
    };
  };
  const config = {
    models: { small: { upstream: "main" }, large: { upstream: "main", model: "large-7" } },
    routes: { auto: ["small", "large"] },
    upstreams: { main: { retries: 0 } },
  };

  it("logs the choice with its probabilities, and a failover as a second choice among what remains", async () => {
    const test = await TestGateway.open(config, { choose });
    test.upstream.play(json("{}", 500), json(chatReply({ content: "ok" })));
    const opened = await test.openRollout();
    expect((await test.post(CHAT, { model: "auto", messages: [user("Hi")] }, as(opened))).status).toBe(200);
    expect(test.upstream.asked.map(({ body }) => JSON.parse(body).model)).toEqual(["large-7", "small"]);
    const artifact = await test.closed(opened.id);
    expect(artifact.calls[0].model).toBe("small");
    expect(artifact.streams).toMatchObject([
      {
        level: "step",
        family: "router",
        steps: [
          {
            call: 0,
            chosen: 1,
            revision,
            reward: null,
            candidates: [
              { id: "small", probability: 0.25 },
              { id: "large", probability: 0.75 },
            ],
          },
          {
            call: 0,
            chosen: 0,
            candidates: [
              { id: "small", probability: 1 },
              { id: "large", probability: 0, selectable: false, reasons: ["failed"] },
            ],
          },
        ],
      },
    ]);
    expect((await test.verify()).problems).toEqual([]);
  });

  it("without a router takes the first that works", async () => {
    const test = await TestGateway.open(config);
    test.upstream.play(json(chatReply({ content: "ok" })));
    await test.post(CHAT, { model: "auto", messages: [user("Hi")] });
    expect(JSON.parse(test.upstream.asked[0]!.body).model).toBe("small");
    expect((await test.post(CHAT, { model: "none", messages: [] })).status).toBe(500);
  });
});

it("with async recording replies are released at once and recorded all the same", async () => {
  const test = await TestGateway.open({ record: "async" });
  test.upstream.otherwise = json(chatReply({ content: "ok" }));
  const opened = await test.openRollout();
  for (let i = 0; i < 10; i++) await test.post(CHAT, ask(), as(opened));
  expect((await test.closed(opened.id)).calls).toHaveLength(10);
});

it("two gateways of one name do not share a book", async () => {
  const test = await TestGateway.open();
  await expect(test.openAnother({})).rejects.toThrow("already uses");
});

it("a gateway without a token does not leave loopback", async () => {
  const test = await TestGateway.open();
  const other = { worker: "other", tokensEnv: [], listen: { host: "0.0.0.0", port: 0 } };
  await expect(test.openAnother(other)).rejects.toThrow("without a token");
});

it("the first streamed byte does not wait for the last", async () => {
  const test = await TestGateway.open();
  test.upstream.play(stream(chatStream([{ content: "now" }, { content: "later" }]), { gapMs: 150 }));
  const startMs = performance.now();
  const response = await fetch(test.gateway.url + CHAT, {
    method: "POST",
    headers: { authorization: `Bearer gateway-token-for-tests` },
    body: JSON.stringify({ ...ask(), stream: true }),
  });
  const reader = response.body!.getReader();
  expect(Buffer.from((await reader.read()).value!).toString()).toContain("now");
  const firstMs = performance.now() - startMs;
  while (!(await reader.read()).done);
  expect(performance.now() - startMs - firstMs).toBeGreaterThan(300);
});
