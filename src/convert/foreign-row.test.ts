import { describe, expect, test } from "vitest";
import type { ForeignDecision } from "./foreign-decision.ts";
import { fromForeign } from "./foreign-row.ts";

const decision = (line: number, more: Partial<ForeignDecision> = {}): ForeignDecision => ({
  line,
  action: 0,
  actions: 2,
  reward: 1,
  propensity: 0.5,
  context: [["x", line]],
  ...more,
});
const idOf = (each: ForeignDecision) => fromForeign(each, { name: "women.csv", source: "real" }).id;

describe("ids of imported rows", () => {
  test("differ between files of one name, and are the same when a file is read again", () => {
    expect(idOf(decision(7))).toBe(idOf(decision(7)));
    expect(idOf(decision(7))).not.toBe(idOf(decision(7, { propensity: 0.25 })));
  });

  test("sort in the order of the lines", () => {
    const ids = [2, 10, 100, 1000].map((line) => idOf(decision(line)));
    expect([...ids].sort()).toEqual(ids);
  });

  test("come from the log where it names its decisions, and times are kept", () => {
    expect(fromForeign(decision(3, { id: "e-1", atMs: 5 }), { name: "log", source: "real" })).toMatchObject({
      id: "e-1",
      atMs: 5,
    });
  });
});
