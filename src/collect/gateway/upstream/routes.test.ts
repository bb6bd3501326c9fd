import { expect, test } from "vitest";
import { decisionWorld } from "../../../../test/support/decision-world.ts";
import { trainThompsonBeta } from "../../../../test/support/train-bandits.ts";
import { digestJson, parseId } from "../../../base/index.ts";
import { rngFrom } from "../../../base/rng.ts";
import { decide, parseStaticTable, policyOf, sealCheckpoint, stepOf } from "../../../policy/index.ts";
import { reservationUsd } from "../call/prices.ts";
import { parseGatewayConfig } from "../config.ts";
import { type DialectName, dialectNamed } from "../dialects/index.ts";
import type { RouteQuestion } from "./choose.ts";
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

/** The smallest request of each dialect with a limit on reply tokens. */
const LIMITED: Readonly<Record<DialectName, object>> = {
  "openai-chat": { messages: [], max_completion_tokens: 77, max_tokens: 5 },
  "openai-completions": { prompt: "", max_tokens: 77 },
  "openai-responses": { input: "", max_output_tokens: 77 },
  "anthropic-messages": { messages: [], max_tokens: 77 },
};

test.each(Object.entries(LIMITED))(
  "the token limit of a request in %s reaches router and budget",
  (name, body) => {
    let asked: RouteQuestion | undefined;
    const routes = new Routes(parseGatewayConfig(`${CONFIG}router: { strategy: uniform }\n`), (question) => {
      asked = question;
      const { context, candidates } = question;
      const table = parseStaticTable("schema: rollbook.static-table.v1\ndefault: [large]\n", "table");
      const decision = decide(context, candidates, { table, floor: 0, exploration: 0 }, rngFrom(1));
      return { decision, family: "f", revision: { id: parseId("r"), digest: digestJson("r", {}) } };
    });
    const request = dialectNamed(name as DialectName).readRequest({ model: "auto", ...body })!;
    const failed = new Set<string>();
    routes.choose("auto", request, {
      rollout: "r",
      requestBytes: 8,
      call: 0,
      failed,
      isResting: () => false,
    });
    expect(asked?.context.fields.maxTokens).toBe(77);
    const price = { prompt: 0, completion: 1e6 };
    expect(reservationUsd(request, { bodyBytes: 8, price })).toBe(77);
  },
);
