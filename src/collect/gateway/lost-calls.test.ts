import { describe, expect, it } from "vitest";
import { endingOfDamaged, lostCalls } from "./lost-calls.ts";

const at = (segment: number) => ({ segment, offset: 0, bytes: 1 });
const rollout = (opening: number, ...calls: [index: number, segment: number][]) => ({
  events: [at(opening)],
  calls: new Map(calls.map(([index, segment]) => [index, at(segment)])),
});
const lost = (
  each: ReturnType<typeof rollout>,
  { sent = [], segments }: { sent?: number[]; segments: number[] },
) => lostCalls(each, { sent: new Set(sent), segments: new Set(segments) });

describe("lost calls", () => {
  it("are those between two calls where a segment between them is gone", () => {
    expect(lost(rollout(1, [0, 1], [3, 3], [5, 5]), { segments: [1, 3, 4, 5] })).toEqual([1, 2]);
    expect(lost(rollout(1, [2, 3]), { segments: [1, 3] })).toEqual([0, 1]);
  });

  it("are not those that were in progress at a crash: no segment is gone, or the number was recorded later", () => {
    expect(lost(rollout(1, [0, 1], [2, 2]), { segments: [1, 2] })).toEqual([]);
    expect(lost(rollout(1, [1, 1], [0, 3], [2, 3]), { segments: [1, 3] })).toEqual([]);
  });

  it("are those that a later call says were delivered", () => {
    expect(lost(rollout(1, [0, 1], [2, 2]), { sent: [0, 1], segments: [1, 2] })).toEqual([1]);
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
