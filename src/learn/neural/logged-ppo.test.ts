import { describe, expect, it } from "vitest";
import { type Digest, rngFrom } from "../../base/index.ts";
import { policyOf, sealCheckpoint } from "../../policy/index.ts";
import type { LoggedRow } from "../rows/index.ts";
import { trainLoggedPpo } from "./logged-ppo.ts";

const DIGEST = `sha256:${"7".repeat(64)}` as Digest;

/** Two kinds of questions, three models: c answers "plan" best, b answers "code" best. Logged with 0.2, 0.2, 0.6. */
function log(count: number): LoggedRow[] {
  const rng = rngFrom(5n);
  return Array.from({ length: count }, (_, i): LoggedRow => {
    const plan = i % 2 === 0;
    const draw = rng.float();
    const chosen = draw < 0.2 ? 0 : draw < 0.4 ? 1 : 2;
    const right = chosen === (plan ? 2 : 1);
    const probability = [0.2, 0.2, 0.6];
    return {
      ...{ id: `r-${i}`, task: `t-${i}`, session: `s-${i}`, chain: `r-${i}`, family: "router", atMs: 0 },
      ...{ context: { prompt: plan ? "plan a way" : "code a sum", fields: {} }, source: "synthetic" },
      candidates: ["a", "b", "c"].map((id, c) => ({
        ...{ id, selectable: true, reasons: [], features: {}, probability: probability[c]! },
      })),
      ...{ chosen, propensity: probability[chosen]!, reward: (right ? 0.9 : 0.4) + rng.float() / 10 },
      ...{ terminal: true, terms: {}, rewardFrom: "recorded" },
    };
  });
}

const train = (rows: readonly LoggedRow[], seed = 1n) =>
  trainLoggedPpo({ rows, digest: DIGEST }, { steps: 8000 }, rngFrom(seed));

describe("PPO from a log", () => {
  it("finds the best model of each kind of question, also where the log rarely chose it", () => {
    const rows = log(300);
    const { model } = train(rows);
    const policy = policyOf(
      sealCheckpoint(model, { family: "router", id: "p", batches: [], seed: 1n, producedAtMs: 0 }),
    );
    for (const { context, candidates } of rows.slice(0, 20)) {
      const { probabilities } = policy.answer(context, candidates);
      expect(probabilities.indexOf(Math.max(...probabilities))).toBe(
        context.prompt.startsWith("plan") ? 2 : 1,
      );
    }
  });

  it("is a function of rows and seed, whatever the order of the rows", () => {
    const rows = log(60);
    const weights = (of: readonly LoggedRow[], seed: bigint) => {
      const { model } = train(of, seed);
      return sealCheckpoint(model, { family: "router", id: "p", batches: [], seed, producedAtMs: 0 }).revision
        .record.digest;
    };
    const one = weights(rows, 1n);
    expect(weights([...rows].reverse(), 1n)).toBe(one);
    expect(weights(rows, 2n)).not.toBe(one);
  });

  it("refuses rows without a probability or with other candidates", () => {
    const [first, ...rest] = log(20);
    expect(() => train([...rest, { ...first!, propensity: null }])).toThrow("was not logged");
    const fewer = { ...first!, id: "r-x", chosen: 0, candidates: first!.candidates.slice(0, 2) };
    expect(() => train([...rest, fewer])).toThrow("same candidates");
  });
});
