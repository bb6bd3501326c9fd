/** Faults of upstreams and budgets behind `model: "auto"`. src/serve/router.test.ts covers faults of policies and
 *  tables. */
import { describe, expect, test } from "vitest";
import { explainCall } from "../../src/book/serve/index.ts";
import type { LocalUpstream } from "../../src/collect/gateway/index.ts";
import { distribution } from "../../src/policy/index.ts";
import { listTable } from "../../src/serve/candidates.ts";
import { echoModels, routedGateway } from "../support/routed-gateway.ts";

const TABLE = { table: { default: ["large"] }, exploration: 0 };

test("with every upstream down the client hears the last one, every choice is logged, and the next call is served", async () => {
  let isDown = true;
  const models: LocalUpstream = async (request) =>
    isDown ? Response.json({ error: { message: "down" } }, { status: 503 }) : echoModels(request);
  const { post, steps } = await routedGateway({ exploration: 0.5 }, { models });
  const ask = () =>
    post("/v1/chat/completions", { model: "auto", messages: [{ role: "user", content: "hello" }] });
  expect(await ask()).toMatchObject({ status: 503, body: { error: { message: "down" } } });
  isDown = false;
  expect((await ask()).status).toBe(200);
  const logged = await steps();
  expect(logged).toHaveLength(3);
  const [first, second] = logged.filter(({ id }) => logged.filter((each) => each.id === id).length === 2);
  expect(first!.candidates.map(({ probability }) => probability)).toEqual([0.75, 0.25]);
  // The failed candidate has the reason "failed". The remaining one has probability 1.
  expect(second!.candidates[first!.chosen]).toMatchObject({ probability: 0, reasons: ["failed"] });
  expect(second!.candidates[second!.chosen]).toMatchObject({ probability: 1 });
});

test("a budget below zero is refused when the rollout is opened", async () => {
  const { post } = await routedGateway({});
  const { status, body } = await post("/v1/rollouts", { budgetUsd: -1 });
  expect([status, body.error.code]).toEqual([400, "bad-request"]);
  expect(body.error.message).toContain("budgetUsd");
});

describe("a budget of zero", () => {
  test("of a rollout refuses its calls before anything is decided", async () => {
    const { post, gateway } = await routedGateway({});
    const { body } = await post("/v1/rollouts", { id: "r-1", budgetUsd: 0 });
    const key = { authorization: `Bearer ${body.apiKey}` };
    const call = { model: "auto", messages: [{ role: "user", content: "hello" }] };
    const answer = await post("/v1/chat/completions", call, key);
    expect([answer.status, answer.body.error.code]).toEqual([402, "budget-cap"]);
    expect(gateway.router!.status().counts.decisions).toBe(0);
  });

  test("per call leaves the cheapest model, and the log says which limit it breaks", async () => {
    const constraints = { maxPriceUsdPerCall: 0 };
    const { ask, post, steps, openAgain } = await routedGateway({ ...TABLE, constraints });
    expect(await ask("r-1")).toBe("small");
    const { body } = await post("/v1/route", { model: "auto", prompt: "hello" });
    expect(body).toMatchObject({ model: "small", reason: "constraints-relaxed", relaxed: ["over-price"] });
    const logged = await steps();
    expect(logged).toHaveLength(2);
    for (const { seen, candidates, ...step } of logged) {
      expect(step).toMatchObject({ reason: "constraints-relaxed", relaxed: ["over-price"] });
      expect(candidates).toMatchObject([
        { id: "small", selectable: true, reasons: [], probability: 1 },
        { id: "large", selectable: false, reasons: ["over-price"], probability: 0 },
      ]);
      // A judge has only the logged facts.
      const asked = candidates.map((one) => ({ ...one, features: one.seen ?? {} }));
      const router = { table: listTable(["large"]), floor: 0, exploration: 0, constraints };
      const judged = distribution({ prompt: "", fields: seen ?? {} }, asked, router);
      expect(judged).toMatchObject({ probabilities: [1, 0], relaxed: ["over-price"] });
    }
    const explained = await explainCall(await openAgain(), "r-1");
    expect(explained.steps[0]!.relaxed).toEqual(["over-price"]);
    expect(explained.steps[0]!.lines).toContain("small was taken although it costs more than the limit.");
    expect(explained.steps[0]!.masked).toEqual([{ id: "large", reasons: ["over-price"] }]);
  });
});
