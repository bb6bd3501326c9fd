import { describe, expect, it } from "vitest";
import { billed, CANDIDATES, routingWorld } from "../../../test/support/routing-world.ts";
import { makePolicy } from "../../../test/support/served-policies.ts";
import { toLoggedRow } from "../../convert/routing-jsonl.ts";
import { DEFAULT_SPLIT, digestRows, splitOf, withSplit } from "../../learn/index.ts";
import { policyOf } from "../../policy/index.ts";
import { judgeRowsOf } from "./judge-rows.ts";

/** A policy that was trained on none of these units, and whose floor was set on some. */
function loaded(calibration: readonly string[] = []) {
  const checkpoint = makePolicy("p", { arms: CANDIDATES, prefers: "strong" });
  const units = { train: [], calibration };
  const split = splitOf(withSplit(checkpoint.model, { rule: DEFAULT_SPLIT, units }), "p")!;
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
    // Written down before digests covered costs.
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

describe("the share of a log that judges", () => {
  it("is that of the split: with the calibration part, unless a floor was calibrated on it", () => {
    const rows = billed(40, 1);
    expect(judgeRowsOf(rows, [loaded()]).judgeShare).toBe(0.4);
    expect(judgeRowsOf(rows, [loaded(["t-1", "t-2"])]).judgeShare).toBe(0.2);
  });
});
