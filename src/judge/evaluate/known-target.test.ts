import { describe, expect, it } from "vitest";
import { BETTER, rareLog } from "../../../test/support/rare-worlds.ts";
import { rngFrom } from "../../base/rng.ts";
import { evaluateTarget } from "./known-target.ts";

const world = BETTER[0]!;
const rows = rareLog(world, 11);
const options = { rng: rngFrom(1), replicates: 200 };

describe("a target known by its probabilities", () => {
  it("is judged by every candidate's, and the intervals hold its value", () => {
    const values = rows.map(() => [1, 0]);
    const found = evaluateTarget(rows, { ...options, target: { of: "candidates", values } });
    const panel = found.panels.reward!;
    if (panel.kind === "refused") throw new Error(panel.reasons.join());
    expect(panel.rows.map(({ estimate }) => estimate.name)).toContain("DR");
    for (const { low, high } of panel.rows[1]!.intervals)
      expect(low < world.means.new && world.means.new < high).toBe(true);
    expect(found.certification).toBe("certified");
  });

  it("is judged by IPS and SNIPS where only the chosen candidate's are given, with the same figures", () => {
    const whole = evaluateTarget(rows, {
      ...options,
      target: { of: "candidates", values: rows.map(() => [1, 0]) },
    });
    const chosen = { of: "chosen" as const, values: rows.map((row) => [row.chosen === 0 ? 1 : 0]) };
    const alone = evaluateTarget(rows, { ...options, target: chosen });
    const [a, b] = [whole.panels.reward!, alone.panels.reward!];
    if (a.kind === "refused" || b.kind === "refused") throw new Error("refused");
    expect(b.rows.map(({ estimate }) => estimate.name)).toEqual(["IPS", "SNIPS"]);
    for (const i of [0, 1]) expect(b.rows[i]!.estimate.value).toBe(a.rows[i]!.estimate.value);
  });

  it("needs no more of a small log than judges it: nothing is trained", () => {
    const few = rows.slice(0, 40);
    const target = { of: "candidates" as const, values: few.map(() => [1, 0]) };
    const panel = evaluateTarget(few, { ...options, target }).panels.reward!;
    if (panel.kind !== "refused") throw new Error("40 rows are too few");
    expect(panel.reasons.join(" ")).toMatch(/Record about 200 different tasks\.$/);
  });

  it("that is no distribution stops with the decision", () => {
    const values = rows.map(() => [0.7, 0.7]);
    expect(() => evaluateTarget(rows, { ...options, target: { of: "candidates", values } })).toThrow(
      /decision d-0-0: target probabilities add up to 1.4/,
    );
  });
});
