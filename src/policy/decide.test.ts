import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { digestJson } from "../base/digest.ts";
import { parseId } from "../base/ids.ts";
import { rngFrom } from "../base/rng.ts";
import { decide, digestRouter, distribution, type Router } from "./decide.ts";
import type { DecisionCandidate, DecisionPolicy } from "./decision.ts";
import { stepOf } from "./log-step.ts";
import { parseStaticTable } from "./static-table.ts";

const table = parseStaticTable("schema: rollbook.static-table.v1\ndefault: [small, large, huge]\n", "table");
const context = { prompt: "hello", fields: {} };
const candidate = (id: string, selectable = true): DecisionCandidate => ({
  id,
  selectable,
  reasons: selectable ? [] : ["over-budget"],
  features: {},
});
const three = [candidate("small"), candidate("large"), candidate("huge", false)];

function policyOf(probabilities: number[], confidence = 1): DecisionPolicy {
  return {
    family: "router",
    revision: { id: parseId("r1"), digest: digestJson("test", String(probabilities)) },
    answer: () => ({ probabilities, confidence }),
  };
}
const router = (over: Partial<Router> = {}): Router => ({ table, floor: 0.55, exploration: 0, ...over });

describe("the final distribution", () => {
  test("is the policy's at or above the floor, and the table's below it", () => {
    expect(distribution(context, three, router({ policy: policyOf([0.2, 0.8, 0], 0.55) }))).toEqual({
      probabilities: [0.2, 0.8, 0],
      reason: "policy",
      confidence: 0.55,
    });
    expect(distribution(context, three, router({ policy: policyOf([0.2, 0.8, 0], 0.54) }))).toEqual({
      probabilities: [1, 0, 0],
      reason: "below-floor",
      confidence: 0.54,
    });
    expect(distribution(context, three, router())).toEqual({
      probabilities: [1, 0, 0],
      reason: "no-policy",
      confidence: null,
    });
  });

  test("includes exploration, so every selectable candidate has support and the rest has none", () => {
    expect(distribution(context, three, router({ exploration: 0.25 })).probabilities).toEqual([
      0.875, 0.125, 0,
    ]);
  });

  test("sums to 1 over the selectable candidates for any answer, floor and exploration", () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.integer({ min: 1, max: 1000 }), fc.boolean()), { minLength: 1, maxLength: 12 }),
        fc.double({ min: 0, max: 1, noNaN: true }),
        fc.double({ min: 0, max: 1, noNaN: true }),
        (raw, exploration, confidence) => {
          fc.pre(raw.some(([, selectable]) => selectable));
          const candidates = raw.map(([, selectable], i) => candidate(`c${i}`, selectable));
          const weights = raw.map(([weight, selectable]) => (selectable ? weight : 0));
          const total = weights.reduce((a, b) => a + b);
          const any = parseStaticTable(
            `schema: rollbook.static-table.v1\ndefault: [${candidates.map((one) => one.id).join(", ")}]\n`,
            "table",
          );
          const { probabilities } = distribution(context, candidates, {
            policy: policyOf(
              weights.map((weight) => weight / total),
              confidence,
            ),
            table: any,
            floor: 0.5,
            exploration,
          });
          expect(probabilities.reduce((a, b) => a + b)).toBeCloseTo(1, 9);
          expect(
            probabilities.every((each, i) => each >= 0 && (candidates[i]!.selectable || each === 0)),
          ).toBe(true);
        },
      ),
    );
  });

  test("refuses an answer that is no distribution over the selectable candidates", () => {
    for (const answer of [
      [0.5, 0.4, 0],
      [0.5, 0.5],
      [0, 0, 1],
      [1.5, -0.5, 0],
      [Number.NaN, 1, 0],
    ]) {
      expect(() => distribution(context, three, router({ policy: policyOf(answer) }))).toThrow(
        expect.objectContaining({ code: "bad-answer" }) as Error,
      );
    }
  });

  test("refuses when nothing can be chosen, by the policy or by the table", () => {
    expect(() => distribution(context, [candidate("small", false)], router())).toThrow(
      expect.objectContaining({ code: "no-candidate" }) as Error,
    );
    expect(() => distribution(context, [candidate("a"), candidate("b")], router())).toThrow(
      expect.objectContaining({ code: "no-candidate" }) as Error,
    );
  });
});

describe("a draw", () => {
  test("follows the logged probabilities, and the same seed draws the same", () => {
    const policy = policyOf([0.25, 0.75, 0]);
    const count = (seed: number) => {
      const rng = rngFrom(seed);
      return Array.from(
        { length: 4000 },
        () => decide(context, three, router({ policy }), rng).chosen,
      ).filter((chosen) => chosen === 1).length;
    };
    // Four standard deviations: 4 · sqrt(4000 · 0.25 · 0.75) ≈ 110.
    expect(Math.abs(count(1) - 3000)).toBeLessThan(110);
    expect(count(1)).toBe(count(1));
  });

  test("becomes a step whose probability is the final one, unlabelled until a reward comes", () => {
    const decision = decide(context, three, router({ exploration: 0.2 }), rngFrom(3));
    const step = stepOf({
      decision,
      context,
      candidates: three,
      revision: { id: parseId("r1"), digest: digestRouter(router()) },
      turn: 0,
    });
    expect(step).toMatchObject({ reward: null, reason: "no-policy", chosen: decision.chosen });
    expect(step.candidates.map((one) => one.probability)).toEqual([0.9, 0.1, 0]);
  });

  test("is logged with what the policy was shown beside the prompt, of the request and of every candidate", () => {
    const candidates = [{ ...candidate("small"), features: { promptPrice: 2 } }, candidate("large")];
    const step = stepOf({
      decision: decide(context, candidates, router(), rngFrom(3)),
      context: { ...context, fields: { tools: 3, stream: false, role: "coder" } },
      candidates,
      revision: { id: parseId("r1"), digest: digestRouter(router()) },
      turn: 0,
    });
    expect(step.seen).toEqual({ tools: 3, stream: false, role: "coder" });
    expect(step.candidates.map(({ seen }) => seen)).toEqual([{ promptPrice: 2 }, undefined]);
  });
});

describe("probabilities that were drawn", () => {
  const drawn: DecisionPolicy = {
    ...policyOf([0.2, 0.8, 0]),
    answer: () => ({
      probabilities: [0.2, 0.8, 0],
      confidence: 0.8,
      monteCarlo: { draws: 256, floor: 0.01 },
    }),
  };
  const logged = (over: Partial<Router>, candidates = three) =>
    stepOf({
      decision: decide(context, candidates, router({ policy: drawn, ...over }), rngFrom(1)),
      context,
      candidates,
      revision: drawn.revision,
      turn: 0,
    }).monteCarlo;

  test("are logged with the number of draws and the floor", () => {
    expect(logged({ exploration: 0.1 })).toEqual({ draws: 256, floor: 0.01 });
  });

  test("are not claimed where the table decided, or nothing was to be decided", () => {
    expect(logged({ floor: 0.9 })).toBeUndefined();
    expect(distribution(context, [candidate("small")], router({ policy: policyOf([1]) }))).not.toHaveProperty(
      "monteCarlo",
    );
  });
});

test("a router's digest changes with policy, table, floor and exploration", () => {
  const other = parseStaticTable("schema: rollbook.static-table.v1\ndefault: large\n", "table");
  const routers = [
    router(),
    router({ floor: 0.6 }),
    router({ exploration: 0.1 }),
    router({ table: other }),
    router({ policy: policyOf([1, 0, 0]) }),
  ];
  expect(new Set(routers.map(digestRouter)).size).toBe(routers.length);
});
