/** The neural learners: CartPole, a logged CartPole, a chain with known values, routing in the simulator and on
 *  RouteLLM, a store larger than the heap. */
import type { JudgePart } from "./judge/part.ts";
import { cartPole, cartPoleLog } from "./learn/cart-pole.ts";
import { chain } from "./learn/chain.ts";
import { largeStore } from "./learn/large-store.ts";
import { routellm } from "./learn/routellm.ts";
import { simulator } from "./learn/simulator.ts";
import { runParts } from "./support/part-table.ts";
import type { Bench } from "./support/programs.ts";

const PARTS: readonly JudgePart[] = [chain, cartPole, cartPoleLog, simulator, routellm, largeStore];

export const bench: Bench = {
  summary: "CQL, PPO, BC and FQE against known optima (--data DIR --only PART --scale N)",
  async run(args) {
    await runParts(PARTS, args);
  },
};
