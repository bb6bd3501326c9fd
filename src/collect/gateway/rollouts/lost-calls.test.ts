import { describe, expect, it } from "vitest";
import { endingOfDamaged, lostCalls } from "./lost-calls.ts";

const lost = (calls: readonly number[], { sent = [] as number[], hasGap = false }) =>
  lostCalls(
    {
      calls: new Map(calls.map((call) => [call, { segment: 1, offset: 0, bytes: 1 }])),
      started: Math.max(-1, ...calls) + 1,
    },
    { sent: new Set(sent), hasGap },
  );

describe("lost calls", () => {
  it("are those that are not there where a call says that there were more", () => {
    expect(lost([0, 3, 5], { hasGap: true })).toEqual([1, 2, 4]);
    expect(lost([2], { hasGap: true })).toEqual([0, 1]);
    expect(lost([0], { hasGap: true })).toEqual([1]);
  });

  it("are not those that were never recorded: in progress at a crash, or refused", () => {
    expect(lost([0, 2], {})).toEqual([]);
  });

  it("are those that a later call says were delivered", () => {
    expect(lost([0, 2], { sent: [0, 1] })).toEqual([1]);
  });

  it("make an ending the infrastructure's failure, unless it is outside of baselines anyway", () => {
    expect(endingOfDamaged(undefined, [3])).toMatchObject({
      message: "call 3 is missing: a part of the journal is gone.",
    });
    expect(endingOfDamaged({ kind: "failed", owner: "agent", message: "no" }, [3])).toMatchObject({
      owner: "infrastructure",
    });
    expect(endingOfDamaged({ kind: "cancelled" }, [3])).toEqual({ kind: "cancelled" });
  });
});
