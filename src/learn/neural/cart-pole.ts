/** CartPole (Barto, Sutton and Anderson, 1983) with the constants of Gymnasium's CartPole-v1, in exact arithmetic.
 *  The agent keeps a pole on a cart upright by pushing left or right; every step pays 1. A fall ends the episode; the
 *  step limit truncates it. */
import type { Rng } from "../../base/index.ts";
import type {
  DecisionContext,
  DecisionEnvironment,
  EnvironmentStep,
  FeatureSpec,
} from "../../policy/index.ts";
import { DEFAULT_FEATURES } from "../../policy/index.ts";

const GRAVITY = 9.8;
const CART_MASS = 1;
const POLE_MASS = 0.1;
const TOTAL_MASS = CART_MASS + POLE_MASS;
const HALF_LENGTH = 0.5;
const POLE_MOMENT = POLE_MASS * HALF_LENGTH;
const FORCE = 10;
const STEP_SECONDS = 0.02;
const WIDEST_ANGLE = (12 * 2 * Math.PI) / 360;
const WIDEST_PLACE = 2.4;

const FIELDS = ["place", "speed", "angle", "spin"] as const;

export const CART_POLE_SPEC: FeatureSpec = {
  ...DEFAULT_FEATURES,
  wordBuckets: 0,
  fields: FIELDS.map((name) => ({ name, kind: "number" })),
};

export function makeCartPole({ limit = 500 }: { limit?: number } = {}): DecisionEnvironment {
  let state = [0, 0, 0, 0];
  let steps = 0;
  const context = (): DecisionContext => ({
    prompt: "",
    fields: { place: state[0]!, speed: state[1]!, angle: state[2]!, spin: state[3]! },
  });
  return {
    candidates: ["left", "right"].map((id) => ({ id, selectable: true, reasons: [], features: {} })),
    reset(rng: Rng) {
      state = Array.from({ length: 4 }, () => (rng.float() - 0.5) / 10);
      steps = 0;
      return context();
    },
    step(choice): EnvironmentStep {
      state = moved(state, choice === 1 ? FORCE : -FORCE);
      steps++;
      const fallen = Math.abs(state[0]!) > WIDEST_PLACE || Math.abs(state[2]!) > WIDEST_ANGLE;
      const end = fallen ? "terminal" : steps >= limit ? "truncated" : "none";
      return { reward: 1, context: context(), end };
    },
  };
}

function moved([place, speed, angle, spin]: readonly number[], force: number): number[] {
  const { sin, cos } = circle(angle!);
  const push = (force + POLE_MOMENT * spin! * spin! * sin) / TOTAL_MASS;
  const turn = (GRAVITY * sin - cos * push) / (HALF_LENGTH * (4 / 3 - (POLE_MASS * cos * cos) / TOTAL_MASS));
  const pull = push - (POLE_MOMENT * turn * cos) / TOTAL_MASS;
  return [
    place! + STEP_SECONDS * speed!,
    speed! + STEP_SECONDS * pull,
    angle! + STEP_SECONDS * spin!,
    spin! + STEP_SECONDS * turn,
  ];
}

/** Taylor series: the angles are small, and the last bit of `Math.sin` may differ between engines. */
function circle(x: number): { sin: number; cos: number } {
  const s = x * x;
  return {
    sin: x * (1 - (s / 6) * (1 - (s / 20) * (1 - (s / 42) * (1 - (s / 72) * (1 - s / 110))))),
    cos: 1 - (s / 2) * (1 - (s / 12) * (1 - (s / 30) * (1 - (s / 56) * (1 - (s / 90) * (1 - s / 132))))),
  };
}
