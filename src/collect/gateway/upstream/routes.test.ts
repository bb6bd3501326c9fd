import { expect, test } from "vitest";
import { decisionWorld } from "../../../../test/support/decision-world.ts";
import { trainThompsonBeta } from "../../../../test/support/train-bandits.ts";
import { rngFrom } from "../../../base/rng.ts";
import { decide, parseStaticTable, policyOf, sealCheckpoint, stepOf } from "../../../policy/index.ts";
import { parseGatewayConfig } from "../config.ts";
import { Routes } from "./routes.ts";

const CONFIG = `
upstreams:
  local: { baseUrl: "http://127.0.0.1:1/v1" }
models:
  large: { upstream: local }
  small: { upstream: local }
routes:
  auto: [large, small]
`;

test("a step that a Thompson router decided tells its draws and its floor", () => {
  const model = trainThompsonBeta(decisionWorld(200, 1), { draws: 64, floor: 0.05, seed: 1 });
  const facts = { family: "router", id: "r1", batches: [], seed: 1n, producedAtMs: 0 };
  const policy = policyOf(sealCheckpoint(model, facts));
  const table = parseStaticTable("schema: rollbook.static-table.v1\ndefault: [large]\n", "table");
  const rng = rngFrom(1);
  const routes = new Routes(parseGatewayConfig(CONFIG), ({ context, candidates }) => ({
    decision: decide(context, candidates, { policy, table, floor: 0, exploration: 0.1 }, rng),
    family: policy.family,
    revision: policy.revision,
  }));
  const request = { messages: [], parameters: {} } as never;
  const choice = routes.choose("auto", request, {
    rollout: "r",
    requestBytes: 100,
    call: 0,
    failed: new Set(),
    isResting: () => false,
  })!;
  const step = stepOf(choice.decided);
  expect(step.monteCarlo).toEqual({ draws: 64, floor: 0.05 });
  for (const { probability } of step.candidates) expect(probability).toBeGreaterThanOrEqual(0.05);
});
