/** POST /v1/route: a decision without a call is recorded, graded, judged and used for training like any other. */
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { decisionRows } from "../../src/book/decisions/index.ts";
import { evaluateCheckpoint } from "../../src/book/judge/index.ts";
import type { OpenBook } from "../../src/book/open/index.ts";
import { explainCall } from "../../src/book/serve/index.ts";
import { trainPolicy } from "../../src/book/train/index.ts";
import { verifyBook } from "../../src/keep/verify/index.ts";
import type { LoggedRow } from "../../src/learn/index.ts";
import { collect } from "../support/collect.ts";
import { routedGateway } from "../support/routed-gateway.ts";

const EVEN = { strategy: "epsilon-greedy", exploration: 1, seed: 3 };

/** Rows labelled by feedback of that name, or unlabelled rows if no name is given. */
async function rowsIn(book: OpenBook, feedback?: string): Promise<LoggedRow[]> {
  const unlabelled = feedback === undefined ? "keep" : "exclude";
  const { rows } = await decisionRows(book, { family: "router", feedback, unlabelled });
  return collect(rows());
}

describe("POST /v1/route", () => {
  test("answers with a model and its probability, once another process can read the decision", async () => {
    const { post, openAgain } = await routedGateway({ table: { default: ["large"] }, exploration: 0.2 });
    const { status, body } = await post("/v1/route", {
      ...{ model: "auto", prompt: "Prove that 2 is prime.", context: { team: "maths", urgent: true } },
    });
    expect(status).toBe(200);
    expect(body).toMatchObject({ reason: "no-policy", family: "router" });
    expect(body.candidates.map(({ probability }: { probability: number }) => probability)).toEqual([
      0.1, 0.9,
    ]);
    const chosen = body.candidates.find(({ id }: { id: string }) => id === body.model);
    expect(body.probability).toBe(chosen.probability);
    // The gateway still runs, so these rows were on disk before the answer.
    const book = await openAgain();
    const [row, ...others] = await rowsIn(book);
    expect(others).toEqual([]);
    expect(row).toMatchObject({
      ...{ family: "router", propensity: body.probability, reward: null },
      context: { prompt: "Prove that 2 is prime.", fields: { team: "maths", urgent: true, messages: 1 } },
    });
    expect(row!.id).toContain(body.id);
    expect(row!.candidates[0]!.features).toEqual({ promptPrice: 1, completionPrice: 4 });
    const { steps } = await explainCall(book, body.id);
    expect(steps[0]).toMatchObject({ chosen: body.model, probability: body.probability });
  });

  test("a prompt has the same features in every form, and in a call", async () => {
    const { post, steps } = await routedGateway({});
    const prompt = "Prove “2 is prime”.";
    const messages = [{ role: "user", content: prompt }];
    await post("/v1/chat/completions", { model: "auto", messages });
    await post("/v1/route", { model: "auto", messages });
    await post("/v1/route", { model: "auto", prompt });
    await post("/v1/route", { context: { team: "maths" }, model: "auto", prompt });
    await post("/v1/route", { model: "auto", messages, context: { team: "x".repeat(99) } });
    const seen = (await steps()).map(({ seen: { team: _, ...fields } = {} }) => fields);
    const bytes = Buffer.byteLength(JSON.stringify({ model: "auto", messages }));
    const fields = { messages: 1, requestTokens: Math.ceil(bytes / 4), stream: false, tools: 0 };
    expect(seen).toEqual(Array(5).fill(fields));
  });

  test.each([
    [
      "the order of the candidates, which the router's digest shows",
      {},
      ", so the router preferred the first candidate (small).",
    ],
    [
      "the order, with exploration",
      { exploration: 0.1 },
      ", so the router preferred the first candidate (small).",
    ],
    [
      "a random choice, without a preference",
      { exploration: 1 },
      ". The router chose at random, with equal probabilities.",
    ],
  ])("its record explains %s", async (_, router, reason) => {
    const names = ["small", "medium", "large"];
    const { post, openAgain } = await routedGateway(router, { names });
    const { body } = await post("/v1/route", { model: "auto", prompt: "Prove that 2 is prime." });
    const { steps } = await explainCall(await openAgain(), body.id);
    expect(steps[0]!.lines).toContain(`No learned policy was in use${reason}`);
  });

  test.each([
    [
      "the rule of a table",
      { table: { rules: [{ when: { contains: ["prove"] }, choose: ["large", "small"] }], default: "small" } },
      [
        "The static table decided: no learned policy serves.",
        'Rule 1 of the table holds: {"contains":["prove"]}. It prefers large, then small.',
      ],
    ],
    [
      "the default of a table",
      {
        table: { rules: [{ when: { fields: { tools: { min: 1 } } }, choose: "large" }], default: "small" },
        exploration: 0.3,
      },
      [
        "The static table decided: no learned policy serves.",
        "The default of the table was used. It prefers small.",
      ],
    ],
    [
      "the strategy softmax",
      {
        ...{ strategy: "softmax", temperature: 0.5, exploration: 0 },
        candidates: { small: { quality: 0.4 }, large: { quality: 0.9, callPrice: 0.02 } },
      },
      [
        "Strategy softmax decided: P ∝ exp((quality − costWeight · callPrice) / temperature), with costWeight 1 and temperature 0.5, for small (quality 0.4, callPrice 0), large (quality 0.9, callPrice 0.02).",
      ],
    ],
  ])("its record explains %s, as the live router does", async (_what, router, lines) => {
    const { post, openAgain, gateway } = await routedGateway(router);
    const prompt = "Prove that 2 is prime.";
    const { body } = await post("/v1/route", { model: "auto", prompt });
    expect(body.reason).toBe("no-policy");
    const { steps } = await explainCall(await openAgain(), body.id);
    expect(steps[0]!.lines).toEqual(expect.arrayContaining(lines));
    const answer = gateway.router!.choose({
      ...{ alias: "auto", context: { prompt, fields: { tools: 0 } } },
      candidates: ["small", "large"].map((id) => ({ id, selectable: true, reasons: [], features: {} })),
    });
    expect(gateway.router!.explain(answer).lines).toEqual(expect.arrayContaining(lines));
  });

  test("a gateway without a router is explained by the order of the route", async () => {
    const config = { router: undefined, routes: { auto: ["large", "small"] } };
    const { post, openAgain } = await routedGateway({}, { config });
    const { body } = await post("/v1/route", { model: "auto", prompt: "Prove that 2 is prime." });
    const { steps } = await explainCall(await openAgain(), body.id);
    expect(steps[0]!.lines).toContain(
      "No learned policy was in use, so the router preferred the first candidate (large).",
    );
  });

  test("its decisions take feedback, also after a restart, and judge a policy", async () => {
    const first = await routedGateway(EVEN);
    const decided = await Promise.all(
      Array.from({ length: 300 }, async (_, i) => {
        const hard = i % 2 === 0;
        const content = hard ? `prove lemma ${i}` : `greet ${i}`;
        const request = { model: "auto", messages: [{ role: "user", content }] };
        const { id, model } = (await first.post("/v1/route", request)).body as Record<"id" | "model", string>;
        return { id, model, hard };
      }),
    );
    const grade = (post: typeof first.post, { id, model, hard }: (typeof decided)[number]) => {
      const value = (model === "large") === hard ? 1 : 0;
      return post("/v1/feedback", { rollout: id, name: "solved", value, idempotencyKey: id });
    };
    for (const one of decided.slice(0, 100))
      expect(await grade(first.post, one)).toEqual({ status: 200, body: { added: true } });
    await first.close();
    const second = await routedGateway(EVEN, { root: first.root });
    for (const one of decided.slice(100))
      expect((await grade(second.post, one)).body).toEqual({ added: true });
    expect((await grade(second.post, decided[0]!)).body).toEqual({ added: false });
    await second.close();

    const book = await second.openAgain();
    const rows = await rowsIn(book, "solved");
    expect(rows).toHaveLength(300);
    expect(new Set(rows.map(({ propensity }) => propensity))).toEqual(new Set([0.5]));
    expect(rows.every(({ reward }) => reward !== null)).toBe(true);
    const { problems } = await verifyBook(book.store, { trustedKeys: [] } as never);
    expect(problems).toEqual([]);
    const out = join(second.root, "policy");
    const learner = { kind: "linucb", alpha: 0.1 } as const;
    const split = { unit: "decision", shares: [0.5, 0, 0.5], salt: "" } as const;
    await trainPolicy(book, { learner, id: "p-1", family: "router", feedback: "solved", split, out });
    const request = { checkpoint: out, family: "router", feedback: "solved", exploration: 0, floor: 0 };
    const { evaluation, refusal } = await evaluateCheckpoint(book, request);
    expect(refusal).toBeUndefined();
    const { values } = evaluation.contenders.find(({ name }) => name === "learned")!;
    // A uniform choice is right half the time, and the best choice always.
    expect(values[evaluation.measures[0]!]!.estimate.value).toBeGreaterThan(0.8);
  });

  test("a decision within a rollout belongs to its session, and a closed rollout decides no more", async () => {
    const { post, openAgain, close } = await routedGateway(EVEN);
    const { body: opened } = await post("/v1/rollouts", { id: "run-1" });
    const key = { authorization: `Bearer ${opened.apiKey}` };
    const { body } = await post("/v1/route", { model: "auto", prompt: "hello" }, key);
    expect((await post("/v1/rollouts/run-1/close", {})).body).toMatchObject({ calls: 0 });
    const late = await post(
      "/v1/route",
      { model: "auto", prompt: "hello" },
      { "x-rollbook-rollout": "run-1" },
    );
    expect(late.status).toBe(503);
    await close();
    const rows = await rowsIn(await openAgain());
    expect(rows).toMatchObject([{ session: "run-1" }]);
    expect(rows[0]!.id).toContain(body.id);
  });

  test("a secret in the prompt is not recorded", async () => {
    const { post, close, openAgain } = await routedGateway(EVEN, { config: { redact: ["hunter\\d+"] } });
    await post("/v1/route", { model: "auto", prompt: "my password is hunter2", context: { who: "hunter3" } });
    await close();
    const [row] = await rowsIn(await openAgain());
    expect(row!.context).toMatchObject({
      prompt: "my password is [redacted]",
      fields: { who: "[redacted]" },
    });
  });

  test("draws by the decision: the same seed and ids give the same models", async () => {
    const play = async () => {
      let ids = 0;
      const { post } = await routedGateway(EVEN, { newId: () => `d-${ids++}` });
      const models: string[] = [];
      for (let i = 0; i < 20; i++)
        models.push((await post("/v1/route", { model: "auto", prompt: "x" })).body.model);
      return models;
    };
    const models = await play();
    expect(new Set(models).size).toBe(2);
    expect(await play()).toEqual(models);
  });

  test.each([
    ["a model instead of an alias", { model: "small", prompt: "x" }, 404, /"small" is not an alias.*auto/],
    ["neither messages nor prompt", { model: "auto" }, 400, /either messages or prompt/],
    ["both", { model: "auto", prompt: "x", messages: [] }, 400, /either messages or prompt/],
    ["no model", { prompt: "x" }, 400, /^model is missing\.$/],
    ["messages that are no list", { model: "auto", messages: {} }, 400, /^messages is not a list\.$/],
    [
      "a field with nearly the name of another",
      { model: "auto", prompt: "x", contxt: { team: "maths" } },
      400,
      /^unknown field contxt\. Did you mean context\?$/,
    ],
    [
      "a context that is no map of facts",
      { model: "auto", prompt: "x", context: { a: [1] } },
      400,
      /context/,
    ],
  ])("refuses %s", async (_what, request, status, message) => {
    const { post, steps } = await routedGateway(EVEN);
    const answer = await post("/v1/route", request);
    expect(answer.status).toBe(status);
    expect(answer.body.error.message).toMatch(message);
    expect(await steps()).toEqual([]);
  });

  test("takes the fields of chat requests and of model servers", async () => {
    const { post } = await routedGateway(EVEN);
    const more = { max_tokens: 5, tool_choice: "auto", stream: false, guided_json: {}, models: ["a"] };
    expect((await post("/v1/route", { model: "auto", prompt: "x", ...more })).status).toBe(200);
  });

  test("takes POST only, as the other paths that answer none but POST", async () => {
    const { gateway } = await routedGateway(EVEN);
    for (const path of ["/v1/route", "/v1/feedback", "/v1/chat/completions", "/v1/rollouts/r-1/close"]) {
      const { status, headers } = await fetch(gateway.url + path);
      expect([status, headers.get("allow")]).toEqual([405, "POST"]);
    }
    const { status, headers } = await fetch(`${gateway.url}/v1/route`, { method: "PUT" });
    expect([status, headers.get("allow")]).toEqual([405, "GET, POST"]);
  });

  test("where constraints leave nothing, the refusal names every reason", async () => {
    const { post } = await routedGateway({ constraints: { maxPriceUsdPerCall: 0, onNone: "refuse" } });
    const { status, body } = await post("/v1/route", { model: "auto", prompt: "x" });
    expect(status).toBe(422);
    expect(body.error.message).toMatch(/small: over-price; large: over-price/);
  });
});
