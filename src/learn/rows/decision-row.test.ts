import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import { canonicalize } from "../../base/canonical-json.ts";
import { digestRows, type LoggedRow } from "./decision-row.ts";

const shared = ["small", "large"].map((id) => ({
  ...{ id, selectable: true, reasons: [], features: { price: 1 }, probability: 0.5 },
}));

function rowOf(i: number): LoggedRow {
  return {
    ...{ id: `d-${i}`, task: `t,${i}`, session: "s", chain: `d-${i}`, family: "router", source: "real" },
    context: { prompt: `„Größe“ ${i} 🙂, "x"`, fields: { turn: i, name: "a,b" } },
    candidates: i % 3 === 0 ? shared.map((one) => ({ ...one, probability: null })) : shared,
    ...{ chosen: 0, propensity: 0.5, reward: i / 7, atMs: 1000 - i, terminal: true, terms: {} },
    ...{ rewardFrom: "recorded", costUsd: 0.25 },
  };
}

test("the digest of rows is that of their canonical lines in order, whatever order they came in", () => {
  const rows = Array.from({ length: 12 }, (_, i) => rowOf(i));
  for (const callCosts of [false, true]) {
    const lines = rows
      .map(({ costUsd, ...row }) => canonicalize(callCosts ? { ...row, costUsd } : row))
      .sort()
      .join("\n");
    const expected = createHash("sha256").update(`rollbook.decision-rows.v1\0${lines}`).digest("hex");
    expect(digestRows([...rows].reverse(), { callCosts })).toBe(`sha256:${expected}`);
  }
});
