import { describe, expect, it } from "vitest";
import { digestJson } from "../../../base/digest.ts";
import { parseId } from "../../../base/ids.ts";
import { OpenRollout } from "./open-rollout.ts";
import { makeOpening, singleOpening } from "./opening.ts";
import { type ClosedRollout, type CloseReport, RolloutStates } from "./rollout-states.ts";

const defaults = {
  rollouts: { idleMs: 1, environment: "gateway@1", dataSource: "real" },
  gatewayName: parseId("gateway"),
  atMs: 5,
} as const;
const rollout = (name: string, make = makeOpening) =>
  new OpenRollout(parseId(name), make(name, {}, defaults));
const closed = (name: string): ClosedRollout => ({
  ...{ content: digestJson("test", name), envelope: digestJson("test", [name]) },
  ...{ ending: { kind: "terminal" }, calls: [0], feedback: [] },
});
const report = Promise.resolve({} as CloseReport);

describe("the states of rollouts", () => {
  it("count what is open, closing or failed, single calls apart", () => {
    const states = new RolloutStates();
    const [a, b, single] = [rollout("a"), rollout("b"), rollout("c", singleOpening)];
    for (const each of [a, b, single]) states.opens(each);
    expect([states.opened, states.singles]).toEqual([2, 1]);
    states.closes(a, report);
    expect([states.enterable("a"), states.live("a")?.kind]).toEqual([undefined, "closing"]);
    states.fails(a);
    expect(states.enterable("a")).toBe(a);
    expect([states.opened, states.singles]).toEqual([2, 1]);
    states.seals("a", closed("a"));
    states.empties(b, {} as CloseReport);
    states.seals("c", closed("c"));
    expect([states.opened, states.singles, [...states.allLive()]]).toEqual([0, 0, []]);
    expect(["a", "b", "c"].map((id) => states.get(id)?.kind)).toEqual(["sealed", "empty", "sealed"]);
  });

  it("hand over to the catalog what is sealed and durable, and not what changes meanwhile", () => {
    const states = new RolloutStates();
    states.opens(rollout("open"));
    for (const id of ["kept", "graded"]) states.seals(id, closed(id));
    states.seals("pending", closed("pending"), false);
    const forget = states.handOver();
    states.seals("graded", { ...closed("graded"), calls: [0, 1] });
    states.seals("late", closed("late"));
    const kinds = () => ["open", "kept", "graded", "pending", "late"].map((id) => states.get(id)?.kind);
    forget(() => false);
    expect(kinds()).toEqual(["open", "sealed", "sealed", "sealed", "sealed"]);
    forget(() => true);
    expect(kinds()).toEqual(["open", undefined, "sealed", "sealed", "sealed"]);
  });

  it("remember the latest 10 000 rollouts that were closed without a call", () => {
    const states = new RolloutStates();
    for (let i = 0; i <= 10_000; i++) {
      const each = rollout(`r-${i}`);
      states.opens(each);
      states.empties(each, {} as CloseReport);
    }
    expect([states.get("r-0"), states.get("r-1")?.kind]).toEqual([undefined, "empty"]);
    expect(states.get("r-10000")?.kind).toBe("empty");
  });
});
