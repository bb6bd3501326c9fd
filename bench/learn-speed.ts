/** The learners' speed: kernels compared with the SIMD peak, steps compared with jax-js, plain JavaScript, d3rlpy,
 *  PyTorch and stable-baselines3. */
import { parseArgs } from "node:util";
import { RollbookError } from "../src/base/errors.ts";
import { mlpSpeed, productSpeed } from "./learn-speed/kernels.ts";
import { cqlSpeed, ppoSpeed } from "./learn-speed/steps.ts";
import { printTable } from "./support/interleave.ts";
import type { Bench } from "./support/programs.ts";

const PARTS: Readonly<Record<string, () => unknown>> = {
  product: productSpeed,
  mlp: mlpSpeed,
  cql: cqlSpeed,
  ppo: ppoSpeed,
};

export const bench: Bench = {
  summary:
    "kernels, CQL and PPO against peers, which it installs (5.5 GB); steps a CPU second (--only product)",
  async run(args) {
    const { values } = parseArgs({
      args,
      options: { only: { type: "string" }, json: { type: "boolean", default: false } },
    });
    const names = Object.keys(PARTS).filter((name) => values.only === undefined || name === values.only);
    if (names.length === 0)
      throw new RollbookError(
        "unknown-name",
        { part: values.only },
        `no part is called ${values.only}. Known: ${Object.keys(PARTS).join(", ")}.`,
      );
    for (const name of names) printTable((await PARTS[name]!()) as Record<string, string | number>[], args);
  },
};
