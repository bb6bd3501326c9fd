import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { digestJson } from "../base/digest.ts";
import { rngFrom } from "../base/rng.ts";
import { checkStream } from "../contract/rollout/stream.ts";
import { type Constraints, constrain, requestTokens } from "./constraints.ts";
import { decide, digestRouter, distribution, type Router } from "./decide.ts";
import type { DecisionCandidate } from "./decision.ts";
import { stepOf } from "./log-step.ts";
import { parseStaticTable } from "./static-table.ts";

const table = parseStaticTable("schema: rollbook.static-table.v1\ndefault: [large, small]\n", "table");
const router = (constraints?: Constraints): Router => ({
  ...{ table, floor: 0, exploration: 0.1 },
  ...(constraints === undefined ? {} : { constraints }),
});
const candidate = (id: string, features: Record<string, number>): DecisionCandidate => ({
  ...{ id, selectable: true, reasons: [], features },
});
const small = candidate("small", { callPrice: 0.001, latencyMs: 200, contextTokens: 1000 });
const large = candidate("large", { callPrice: 0.02, latencyMs: 900, contextTokens: 8000 });
const context = { prompt: "hello", fields: { requestTokens: 500 } };
const reasonsOf = (constraints: Constraints, fields: Record<string, number> = context.fields) =>
  constrain({ ...context, fields }, [small, large], constraints).candidates.map(({ reasons }) => reasons);

describe("a constraint", () => {
  test("masks what breaks it, with a reason for each", () => {
    expect(reasonsOf({ maxPriceUsdPerCall: 0.01 })).toEqual([[], ["over-price"]]);
    expect(reasonsOf({ maxPriceUsdPerCall: 0.01, maxLatencyMs: 500 })).toEqual([
      [],
      ["over-price", "over-latency"],
    ]);
    expect(reasonsOf({ fitContext: true }, { requestTokens: 4000 })).toEqual([["over-context"], []]);
    expect(reasonsOf({ fitContext: true }, { requestTokens: 900, maxTokens: 100 })).toEqual([[], []]);
    expect(reasonsOf({ fitContext: true }, { requestTokens: 900, maxTokens: 101 })).toEqual([
      ["over-context"],
      [],
    ]);
  });

  test("counts a fact that is not declared as broken", () => {
    const bare = candidate("bare", {});
    const all = { maxPriceUsdPerCall: 1, maxLatencyMs: 1000, fitContext: true };
    expect(constrain(context, [bare, large], all).candidates[0]!.reasons).toEqual([
      "price-unknown",
      "latency-unknown",
      "context-unknown",
    ]);
  });

  test("prices a call by its tokens where no price of a call is declared", () => {
    const priced = candidate("priced", { promptPrice: 2, completionPrice: 10 });
    const asked = { prompt: "", fields: { requestTokens: 100_000, maxTokens: 10_000 } };
    // 100 000 tokens at $2 and 10 000 at $10 a million: $0.20 + $0.10.
    const masked = (limit: number) =>
      constrain(asked, [priced, large], { maxPriceUsdPerCall: limit }).candidates[0]!.reasons;
    expect(masked(0.29)).toEqual(["over-price"]);
    expect(masked(0.31)).toEqual([]);
  });

  test("reads the length of a request from its prompt where the request does not say it", () => {
    expect(requestTokens({ prompt: "a".repeat(4001), fields: {} })).toBe(1001);
  });

  test("leaves the digest of a router without constraints as it was", () => {
    // Computed by hand from an object without the key `constraints`.
    const plain = { policy: null, table: table.digest, floor: 0, exploration: 0.1 };
    expect(digestRouter(router())).toBe(digestJson("rollbook.router.v1", plain));
    expect(digestRouter(router({ maxLatencyMs: 5 }))).not.toBe(digestRouter(router()));
    expect(digestRouter(router({ maxLatencyMs: 5 }))).not.toBe(digestRouter(router({ maxLatencyMs: 6 })));
  });
});

describe("where no candidate keeps the constraints", () => {
  test("the cheapest that fits the context is taken, and the decision says so", () => {
    const zero = distribution(context, [large, small], router({ maxPriceUsdPerCall: 0 }));
    expect(zero).toMatchObject({
      ...{ probabilities: [0, 1], reason: "constraints-relaxed", relaxed: ["over-price"] },
      candidates: [
        { selectable: false, reasons: ["over-price"] },
        { selectable: true, reasons: [] },
      ],
    });
    const long = { ...context, fields: { requestTokens: 4000 } };
    const both = distribution(long, [small, large], router({ maxPriceUsdPerCall: 0, fitContext: true }));
    expect([both.probabilities, both.relaxed]).toEqual([[0, 1], ["over-price"]]);
    const wordy = { ...context, fields: { requestTokens: 10, maxTokens: 4000 } };
    const cheap = router({ maxPriceUsdPerCall: 0, fitContext: true });
    expect(distribution(wordy, [small, large], cheap).probabilities).toEqual([0, 1]);
    const longer = { ...context, fields: { requestTokens: 9000 } };
    expect(distribution(longer, [small, large], router({ fitContext: true })).probabilities).toEqual([0, 1]);
  });

  test("a router that must refuse does, and names every reason", () => {
    const strict = router({ maxPriceUsdPerCall: 0, onNone: "refuse" });
    expect(() => distribution(context, [small, large], strict)).toThrow(
      /small: over-price; large: over-price/,
    );
  });

  test("candidates that have failed are not brought back", () => {
    const failed = { ...small, selectable: false, reasons: ["failed"] };
    const { probabilities } = distribution(context, [failed, large], router({ maxPriceUsdPerCall: 0 }));
    expect(probabilities).toEqual([0, 1]);
  });
});

test("a masked decision becomes a step that says who was masked and why", () => {
  const candidates = [small, large];
  const decision = decide(context, candidates, router({ maxLatencyMs: 500 }), rngFrom(1));
  const step = stepOf({
    ...{ decision, context, candidates, turn: 0 },
    revision: { id: "r" as never, digest: digestRouter(router()) },
  });
  expect(
    step.candidates.map(({ selectable, reasons, probability }) => [selectable, reasons, probability]),
  ).toEqual([
    [true, [], 1],
    [false, ["over-latency"], 0],
  ]);
});

test("a relaxed decision becomes a step that says which limits its choice breaks, and the contract takes it", () => {
  const candidates = [small, large];
  const strict = router({ maxPriceUsdPerCall: 0, maxLatencyMs: 100 });
  const step = stepOf({
    ...{ decision: decide(context, candidates, strict, rngFrom(1)), context, candidates, turn: 0 },
    revision: { id: "r" as never, digest: digestRouter(strict) },
  });
  expect(step).toMatchObject({ reason: "constraints-relaxed", relaxed: ["over-price", "over-latency"] });
  expect(step.candidates[0]).toMatchObject({ id: "small", selectable: true, reasons: [] });
  checkStream({ level: "step", family: "router" as never, steps: [step] }, "stream");
});

test("what a judge masks from a logged row is what the router masked", () => {
  const amount = fc.integer({ min: 0, max: 20 });
  fc.assert(
    fc.property(
      fc.array(fc.tuple(amount, amount), { minLength: 1, maxLength: 6 }),
      amount,
      amount,
      (facts, price, ms) => {
        const candidates = facts.map(([callPrice, latencyMs], i) =>
          candidate(`c${i}`, { callPrice, latencyMs }),
        );
        const all = parseStaticTable(
          `schema: rollbook.static-table.v1\ndefault: [${candidates.map(({ id }) => id).join(", ")}]\n`,
          "table",
        );
        const served: Router = { ...router({ maxPriceUsdPerCall: price, maxLatencyMs: ms }), table: all };
        const first = distribution(context, candidates, served);
        const again = distribution(context, first.candidates!, served);
        expect(again.probabilities).toEqual(first.probabilities);
        expect([again.reason, again.relaxed]).toEqual([first.reason, first.relaxed]);
        expect(first.probabilities.reduce((a, b) => a + b)).toBeCloseTo(1, 9);
      },
    ),
  );
});
