import { describe, expect, it } from "vitest";
import { billed, CANDIDATES, routingWorld } from "../../../test/support/routing-world.ts";
import { makePolicy } from "../../../test/support/served-policies.ts";
import { toLoggedRow } from "../../convert/routing-jsonl.ts";
import { DEFAULT_SPLIT, digestRows, type SplitRule, splitOf, withSplit } from "../../learn/index.ts";
import { policyOf } from "../../policy/index.ts";
import { judgeRowsOf } from "./judge-rows.ts";

/** Policy that was trained on some of these units, and whose floor was set on others. */
function loaded(
  calibration: readonly string[] = [],
  { rule = DEFAULT_SPLIT, train = [] }: { rule?: SplitRule; train?: readonly string[] } = {},
) {
  const checkpoint = makePolicy("p", { arms: CANDIDATES, prefers: "strong" });
  const units = { train, calibration };
  const split = splitOf(withSplit(checkpoint.model, { rule, units }), "p")!;
  return { folder: "p", checkpoint, policy: policyOf(checkpoint), ...split };
}

describe("the digest of rows that judge", () => {
  const rows = billed(40, 1);

  it("covers the recorded costs where they are judged, and nothing but them changes it", () => {
    const { digest, callCosts } = judgeRowsOf(rows, [loaded()]);
    expect(callCosts).toBe(true);
    const dearer = rows.map((row, i) => (i === 3 ? { ...row, costUsd: row.costUsd! + 1e-6 } : row));
    expect(judgeRowsOf(dearer, [loaded()]).digest).not.toBe(digest);
    expect(judgeRowsOf([...rows].reverse(), [loaded()]).digest).toBe(digest);
    expect(digestRows(dearer)).toBe(digestRows(rows));
  });

  it("is that of rows before costs were recorded where none of them is judged", () => {
    const termed = routingWorld(40, 1).map(toLoggedRow);
    const both = termed.map((row) => ({ ...row, costUsd: 2 }));
    expect(judgeRowsOf(both, [loaded()]).digest).toBe(digestRows(termed));
    // Recorded before digests covered costs.
    expect(digestRows(termed)).toBe(
      "sha256:8f9ea5e70ee5cfb5ebd6e9dcf058099392193057456ddbeb10b384fba4c21155",
    );
  });
});

it("a policy that has seen single calls by their shared task id is judged by none of them", () => {
  const single = billed(20, 1).map((row, i) => ({ ...row, task: `r-${i}`, chain: `r-${i}/0/0` }));
  const others = billed(20, 2).map((row) => ({ ...row, id: `other-${row.id}` }));
  const { rows, leftOut } = judgeRowsOf([...single, ...others], [loaded(["single-call"])]);
  expect([rows.length, leftOut]).toEqual([20, { train: 0, calibration: 20 }]);
});

it("policies of different splits are judged by the rows that none of them has seen", () => {
  const rows = billed(40, 1);
  const tasks = [...new Set(rows.map(({ task }) => task))];
  const other: SplitRule = { ...DEFAULT_SPLIT, salt: "other", shares: [0.1, 0, 0.9] };
  const [a, b, floor] = [tasks.slice(0, 4), tasks.slice(2, 9), tasks.slice(9, 12)];
  const policies = [loaded(floor, { train: a }), loaded([], { rule: other, train: b })];
  const seen = new Set([...a, ...b, ...floor]);
  const fresh = rows.filter(({ task }) => !seen.has(task)).map(({ id }) => id);
  for (const order of [policies, [...policies].reverse()]) {
    const judged = judgeRowsOf(rows, order, "id");
    expect(judged.rows.map(({ id }) => id).sort()).toEqual([...fresh].sort());
  }
});

describe("the share of a log that judges", () => {
  it("is that of the split: with the calibration part, unless a floor was calibrated on it", () => {
    const rows = billed(40, 1);
    expect(judgeRowsOf(rows, [loaded()]).judgeShare).toBe(0.4);
    expect(judgeRowsOf(rows, [loaded(["t-1", "t-2"])]).judgeShare).toBe(0.2);
  });
});
