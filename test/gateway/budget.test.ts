import { describe, expect, it } from "vitest";
import { rngFrom } from "../../src/base/rng.ts";
import type { Choose } from "../../src/collect/gateway/upstream/choose.ts";
import { firstInList } from "../../src/collect/gateway/upstream/routes.ts";
import { TestGateway, TOKEN } from "../support/gateway.ts";
import { type Act, chatReply, chatStream, json, stream } from "../support/scripted-upstream.ts";

const CHAT = "/v1/chat/completions";
// The price is 1 USD per million prompt tokens and 2 USD per million completion tokens.
const ASK = { model: "tiny", messages: [{ role: "user", content: "Hi" }] };
/** 7 prompt tokens and 3 completion tokens. */
const COST_USD = 13e-6;
const good = json(chatReply({ content: "ok" }));
const withoutUsage = stream(
  chatStream([{ content: "ok" }]).filter(({ data }) => !JSON.stringify(data).includes("usage")),
);

/** An upstream that holds its reply until `answer` is called. */
function held(): { act: Act; answer: () => void } {
  let answer: () => void = () => {};
  const told = new Promise<void>((done) => (answer = done));
  return { act: (response, asked) => told.then(() => good(response, asked)), answer };
}

async function withBudget(budgetUsd: number) {
  const test = await TestGateway.open();
  test.upstream.otherwise = good;
  const rollout = await test.openRollout({ budgetUsd });
  return { test, rollout, ask: (body: object = ASK) => test.post(rollout.basePath + CHAT, body) };
}

describe("a budget", () => {
  it("lets one of many calls at once through where it is nearly spent, and the next one when that has ended", async () => {
    const { test, rollout, ask } = await withBudget(COST_USD * 1.5);
    const { act, answer } = held();
    test.upstream.play(act);
    const first = ask();
    await expect.poll(() => test.upstream.asked.length).toBe(1);
    const others = await Promise.all(Array.from({ length: 7 }, () => ask()));
    for (const other of others) {
      expect([other.status, other.body.error.code]).toEqual([429, "budget-reserved"]);
      // The client may retry, because nothing is spent yet.
      expect(other.headers.get("x-should-retry")).toBeNull();
    }
    answer();
    expect((await first).status).toBe(200);
    expect([(await ask()).status, (await ask()).status]).toEqual([200, 402]);
    expect(test.upstream.asked).toHaveLength(2);
    expect((await test.closed(rollout.id)).ending).toEqual({ kind: "truncated", limit: "budget" });
  });

  it("reserves what a call asks for: as many small ones at once as it pays for, in the price of the dearest model", async () => {
    const allowed = async (body: object, config: object = {}) => {
      const test = await TestGateway.open(config);
      const { act, answer } = held();
      test.upstream.otherwise = act;
      const { basePath } = await test.openRollout({ budgetUsd: 1000e-6 });
      const calls = Array.from({ length: 12 }, () => test.post(basePath + CHAT, { ...ASK, ...body }));
      const refused = (await Promise.all(calls.map((call) => settledWithin(call, 400)))).filter(Boolean);
      answer();
      await Promise.all(calls);
      return 12 - refused.length;
    };
    // 19 prompt tokens and 100 completion tokens cost 219e-6 USD. The fifth call finds less than that left, but more
    // than 0.
    expect(await allowed({ max_tokens: 100 })).toBe(5);
    expect(await allowed({ max_completion_tokens: 50, n: 2 })).toBe(5);
    // Without a token limit in the request, 1024 completion tokens are reserved.
    expect(await allowed({})).toBe(1);
    const price = (completion: number) => ({ upstream: "main", price: { prompt: 1, completion } });
    const routed = { models: { tiny: price(2), dear: price(4) }, routes: { auto: ["tiny", "dear"] } };
    expect(await allowed({ model: "auto", max_tokens: 100 }, routed)).toBe(3);
  });

  it("is not held back by a call that came to nothing", async () => {
    const { test, ask } = await withBudget(COST_USD * 1.5);
    test.upstream.play(json({ error: { message: "bad" } }, 400));
    expect([(await ask()).status, (await ask()).status, (await ask()).status]).toEqual([400, 200, 200]);
  });

  it("is not held back by a call for which no model could be chosen, while another is in progress", async () => {
    let isBroken = true;
    const choose: Choose = (question) => {
      if (isBroken) throw new Error("no policy");
      return firstInList(rngFrom(1))(question);
    };
    const test = await TestGateway.open({ routes: { auto: ["tiny"] } }, { choose });
    const { act, answer } = held();
    test.upstream.otherwise = act;
    const { basePath } = await test.openRollout({ budgetUsd: 300e-6 });
    const ask = (model: string) => test.post(basePath + CHAT, { ...ASK, model, max_tokens: 100 });
    const first = ask("tiny");
    await expect.poll(() => test.upstream.asked.length).toBe(1);
    expect((await ask("auto")).status).toBe(500);
    isBroken = false;
    const next = ask("auto");
    await expect.poll(() => test.upstream.asked.length).toBe(2);
    answer();
    expect([(await first).status, (await next).status]).toEqual([200, 200]);
  });

  it("of 0 in the configuration refuses calls without a rollout too, before they reach the upstream", async () => {
    const test = await TestGateway.open({ rollouts: { budgetUsd: 0 } });
    test.upstream.otherwise = good;
    for (const path of [CHAT, (await test.openRollout()).basePath + CHAT]) {
      const { status, body } = await test.post(path, ASK);
      expect([status, body.error.code]).toEqual([402, "budget-cap"]);
    }
    expect(test.upstream.asked).toHaveLength(0);
  });

  it("remembers over a restart what calls without usage are taken to have cost", async () => {
    const { test, ask } = await withBudget(60e-6);
    test.upstream.otherwise = withoutUsage;
    const streamed = { ...ASK, stream: true };
    const statuses: number[] = [];
    while (statuses.at(-1) !== 402 && statuses.length < 20) statuses.push((await ask(streamed)).status);
    expect(statuses.length).toBeGreaterThan(2);
    const again = await withBudget(60e-6);
    again.test.upstream.otherwise = withoutUsage;
    const restarted: number[] = [];
    while (restarted.at(-1) !== 402 && restarted.length < 20) {
      restarted.push((await again.ask(streamed)).status);
      await again.test.restart();
    }
    expect(restarted).toEqual(statuses);
  });

  it("is spent by who leaves before a reply is whole, too, and still after a restart", async () => {
    const test = await TestGateway.open();
    const long = "word ".repeat(2000);
    test.upstream.otherwise = stream(chatStream([{ content: long }, { content: "x" }]), { gapMs: 1000 });
    const { basePath } = await test.openRollout({ budgetUsd: 20e-6 });
    const leaving = new AbortController();
    const reply = await fetch(test.gateway.url + basePath + CHAT, {
      ...{ method: "POST", headers: { authorization: `Bearer ${TOKEN}` }, signal: leaving.signal },
      body: JSON.stringify({ ...ASK, stream: true }),
    });
    await reply.body!.getReader().read();
    leaving.abort();
    const status = async () => (await test.post(basePath + CHAT, { ...ASK, model: "nobody" })).status;
    // The rest of the budget stays reserved until the call is over.
    await expect.poll(status).toBe(402);
    await test.restart();
    expect(await status()).toBe(402);
  });
});

/** True if `work` settles within `ms`. */
function settledWithin(work: Promise<unknown>, ms: number): Promise<boolean> {
  const late = new Promise<boolean>((done) => setTimeout(() => done(false), ms));
  return Promise.race([work.then(() => true), late]);
}
