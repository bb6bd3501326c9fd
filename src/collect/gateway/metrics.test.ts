import { expect, it } from "vitest";
import { Metrics } from "./metrics.ts";

const call = {
  ...{ upstream: "u", model: "m", status: 200, outcome: "answered", durationMs: 2000, firstByteMs: 500 },
  usage: { promptTokens: 7, completionTokens: 3 },
};

it("counts calls, tokens, seconds and dollars of a priced call, and no dollars of one whose cost is unknown", () => {
  const metrics = new Metrics();
  metrics.call({ ...call, costUsd: 0.25 });
  metrics.call({ ...call, costUsd: undefined });
  const text = metrics.text();
  for (const line of [
    'rollbook_gateway_calls_total{upstream="u",model="m",status="200",outcome="answered"} 2',
    'rollbook_gateway_tokens_total{model="m",direction="prompt"} 14',
    'rollbook_gateway_tokens_total{model="m",direction="completion"} 6',
    'rollbook_gateway_cost_usd_total{model="m"} 0.25',
    'rollbook_gateway_call_seconds_count{upstream="u"} 2',
    'rollbook_gateway_first_byte_seconds_sum{upstream="u"} 1',
  ])
    expect(text).toContain(`${line}\n`);
});
