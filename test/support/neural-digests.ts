/** Digests of small trainings of every neural learner. They have no input, so they are equal on every machine with the
 *  same arithmetic. */
import { createHash } from "node:crypto";
import { digestJson, rngFrom } from "../../src/base/index.ts";
import {
  CART_POLE_SPEC,
  digestRows,
  makeCartPole,
  trainCql,
  trainNeuralBc,
  trainPpo,
} from "../../src/learn/index.ts";
import { encodeModel, type PolicyModel } from "../../src/policy/index.ts";
import { corridorWalks } from "./chain-world.ts";

export function neuralDigests(): Record<string, string> {
  const rows = corridorWalks(100);
  const data = { rows, digest: digestRows(rows) };
  const small = { hidden: [32], steps: 300, decay: 1 };
  const world = { make: () => makeCartPole(), spec: CART_POLE_SPEC, digest: digestJson("test.v1", "bits") };
  const models: Record<string, PolicyModel> = {
    "cql, chains": trainCql(data, { ...small, discount: 0.9, members: 2 }, rngFrom(1)).model,
    "cql, returns": trainCql(data, { ...small, discount: 1, goal: "return" }, rngFrom(1)).model,
    "neural-bc": trainNeuralBc(data, small, rngFrom(1)).model,
    ppo: trainPpo(world, { steps: 4096, standardise: true, decay: 0.1 }, rngFrom(1)).model,
  };
  return Object.fromEntries(
    Object.entries(models).map(([name, model]) => [
      name,
      createHash("sha256").update(encodeModel(model)).digest("hex").slice(0, 16),
    ]),
  );
}
