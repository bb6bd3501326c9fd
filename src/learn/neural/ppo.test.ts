import { describe, expect, test } from "vitest";
import { digestJson, rngFrom } from "../../base/index.ts";
import { encodeModel } from "../../policy/checkpoint.ts";
import type { DecisionEnvironment } from "../../policy/decision.ts";
import { answerOf } from "../../policy/policy-of.ts";
import { CART_POLE_SPEC, makeCartPole } from "./cart-pole.ts";
import type { Saver } from "./fit.ts";
import { type PpoConfig, type PpoWorld, trainPpo } from "./ppo.ts";

const cartPole: PpoWorld = {
  make: () => makeCartPole(),
  spec: CART_POLE_SPEC,
  digest: digestJson("test.v1", "cart-pole"),
};
const short: PpoConfig = { steps: 2048, horizon: 32, epochs: 4 };

describe("CartPole", () => {
  test("moves as Gymnasium's CartPole-v1 does", () => {
    // The first steps of a log that RLlib recorded in Gymnasium (ray-project/ray, Apache-2.0), in float32.
    const start = [-0.0006970267, -0.0461515822, -0.0192976426, -0.0453409776];
    const environment = makeCartPole();
    const drawn = start.map((each) => 10 * each + 0.5);
    environment.reset({ float: () => drawn.shift()! } as ReturnType<typeof rngFrom>);
    const expected = [
      [-0.0016200584, -0.2409915775, -0.0202044621, 0.2411914468],
      [-0.0064398898, -0.045586925, -0.015380634, -0.0577954203],
    ];
    for (const [i, values] of expected.entries())
      Object.values(environment.step(i).context.fields).forEach((each, k) => {
        expect(each).toBeCloseTo(values[k]!, 6);
      });
  });

  test("ends by falling, and is truncated by its limit", () => {
    const environment = makeCartPole({ limit: 9 });
    environment.reset(rngFrom(1));
    const ends = Array.from({ length: 9 }, (_, i) => environment.step(i % 2).end);
    expect(ends).toEqual([...new Array(8).fill("none"), "truncated"]);
    environment.reset(rngFrom(1));
    let end = "none";
    for (let i = 0; i < 9 && end === "none"; i++) end = environment.step(0).end;
    expect(end).toBe("truncated");
    const long = makeCartPole();
    long.reset(rngFrom(1));
    for (end = "none"; end === "none"; ) end = long.step(0).end;
    expect(end).toBe("terminal");
  });
});

describe("PPO", () => {
  test("learns to balance the pole far better than chance within 20 000 steps", () => {
    const { model, report } = trainPpo(cartPole, { steps: 20_000 }, rngFrom(1));
    const answer = answerOf(model);
    const environment = makeCartPole();
    let context = environment.reset(rngFrom(77));
    let steps = 0;
    for (let end = "none"; end === "none"; steps++) {
      const { probabilities } = answer(context, environment.candidates);
      const taken = environment.step(probabilities.indexOf(1));
      context = taken.context;
      end = taken.end;
    }
    expect(steps).toBeGreaterThan(100);
    expect(report.checks).toMatchObject({ weightsChanged: true, lossFinite: true });
    expect(report.checks.reproduced).toBeLessThan(1e-5);
  });

  test("a truncated end is worth what was still to come: its value does not sink to that of an ending", () => {
    // One state that pays 1 for ever, cut after every 4 steps. Its value at γ = 0.9 is 10, not the 2 … 4 of short
    // episodes.
    const endless = (end: "terminal" | "truncated"): PpoWorld => ({
      make: () => {
        let steps = 0;
        const context = { prompt: "", fields: { place: 1 } };
        const environment: DecisionEnvironment = {
          candidates: makeCartPole().candidates,
          reset: () => {
            steps = 0;
            return context;
          },
          step: () => ({ reward: 1, context, end: ++steps % 4 === 0 ? end : "none" }),
        };
        return environment;
      },
      spec: CART_POLE_SPEC,
      digest: digestJson("test.v1", end),
    });
    const config = { steps: 20_000, discount: 0.9, trace: 0.95, rate: 3e-3 };
    const value = (end: "terminal" | "truncated") =>
      trainPpo(endless(end), config, rngFrom(3)).report.curve.at(-1)!.measures!.value!;
    expect(value("truncated")).toBeGreaterThan(8);
    expect(value("terminal")).toBeLessThan(5);
  });

  test("killed after any saved state, it ends with the bits of one that ran through", () => {
    const saves: Uint8Array[] = [];
    const keep: Saver = { load: () => undefined, save: (bytes) => void saves.push(bytes) };
    const whole = trainPpo(cartPole, short, rngFrom(5), { saver: keep });
    for (const saved of [saves[0]!, saves[3]!]) {
      const resumed = trainPpo(cartPole, short, rngFrom(5), { saver: { load: () => saved, save: () => {} } });
      expect(Buffer.from(encodeModel(resumed.model)).equals(encodeModel(whole.model))).toBe(true);
      expect(resumed.report.episodes).toBe(whole.report.episodes);
    }
  });

  test("refuses a discount outside 0 … 1", () => {
    expect(() => trainPpo(cartPole, { ...short, discount: 1.1 }, rngFrom(1))).toThrow(/discount is 1.1/);
  });
});
