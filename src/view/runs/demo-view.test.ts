import { describe, expect, it } from "vitest";
import { DEMO_SUMMARY } from "../../../test/support/demo-summary.ts";
import { paint } from "../format.ts";
import { renderReportPage } from "../report/render-report.ts";
import type { DemoWindow } from "./demo-summary.ts";
import { renderDemo, renderStage, rewardPlot } from "./demo-view.ts";

function windowOf(index: number, mean: number, servedValue: number): DemoWindow {
  return {
    ...{ index, collected: 10, collectedBy: "behaviour", collectedValue: mean, costUsd: 0.001 },
    reward: { mean, interval: { low: mean - 0.1, high: mean + 0.1, level: 0.95 } },
    ...{ outcome: "kept", serves: "behaviour", servedValue, refusals: [], learners: [] },
  };
}

describe("the plot of rewards", () => {
  const plot = rewardPlot({ windows: [windowOf(1, 0.3, 0.5), windowOf(2, 0.6, 0.9)], optimum: 1 });
  const lines = plot.split("\n");
  const rowOf = (mark: string, column: "first" | "last") =>
    lines.findIndex((line) => {
      const at = column === "first" ? line.indexOf(mark) : line.lastIndexOf(mark);
      return at >= 0 && (column === "first" ? at < 24 : at >= 24) && line.includes("┤");
    });

  it("puts the optimum at the top and a higher mean in a higher row", () => {
    expect(lines[0]).toMatch(/^ +1\.0000 ┤.*┄ known optimum 1\.0000$/);
    expect(rowOf("●", "last")).toBeLessThan(rowOf("●", "first"));
    expect(rowOf("◆", "last")).toBeLessThan(rowOf("●", "last"));
  });

  it("draws each interval around its mean", () => {
    const bar = lines.flatMap((line, y) => (/^ +[\d.]+ ┤ +[│●]/.test(line) ? [y] : []));
    expect(bar).toContain(rowOf("●", "first"));
    expect(bar.length).toBeGreaterThan(1);
  });
});

it("a stage has its time, its window and what it brought", () => {
  expect(renderStage({ window: 2, stage: "sealed", ms: 1234 }, 4, "10 rollouts")).toBe(
    "  1.2 s  window 2 of 4: sealed, 10 rollouts",
  );
  expect(renderStage({ window: 0, stage: "seal the pack", ms: 90 }, 4)).toBe("  0.1 s  seal the pack");
});

describe("the reasons of refusals", () => {
  it("are whole in a file, and cut only on a terminal that is narrower", () => {
    const [window] = DEMO_SUMMARY.windows;
    const refusals = [
      { learner: "linucb", reasons: [`${"the interval is too wide; ".repeat(8)}collect more.`] },
    ];
    const summary = { ...DEMO_SUMMARY, windows: [{ ...window!, refusals }] };
    const refused = (columns?: number) =>
      renderDemo(summary, { paint: paint(false), folder: "demo", columns })
        .split("\n")
        .find((line) => line.includes("refused linucb"))!;
    expect(refused()).toMatch(/collect more\.$/);
    expect(refused(400)).toBe(refused());
    expect(refused(80)).toMatch(/^.{79}…$/);
  });

  it("that differ in figures alone share a line, which names every policy", () => {
    const [window] = DEMO_SUMMARY.windows;
    const refusals = ["linucb", "bc", "cql"].map((learner, i) => ({
      learner,
      reasons: [i < 2 ? `quality: the difference is -0.${i}` : "there are too few units"],
    }));
    const summary = { ...DEMO_SUMMARY, windows: [{ ...window!, refusals }] };
    const refused = renderDemo(summary, { paint: paint(false), folder: "demo" }).match(
      /^in window 1 the gate refused.*/gm,
    );
    expect(refused).toEqual([
      "in window 1 the gate refused linucb (bc with other figures): quality: the difference is -0.0.",
      "in window 1 the gate refused cql: there are too few units.",
    ]);
  });
});

it("the end of a demo of four windows fits a terminal of 40 lines, and 120 columns", () => {
  const windows = [1, 2, 3, 4].map((index) => ({ ...DEMO_SUMMARY.windows[(index - 1) % 3]!, index }));
  const shown = renderDemo(
    { ...DEMO_SUMMARY, windows },
    { paint: paint(false), folder: "demo", columns: 120 },
  );
  const rows = shown
    .trimEnd()
    .split("\n")
    .flatMap((line) => line.match(/.{1,120}|^$/g) ?? []);
  expect(rows.length).toBeLessThan(40);
});

it("the report says whether the gate asks of cost", () => {
  const { gate } = DEMO_SUMMARY;
  expect(renderReportPage(DEMO_SUMMARY)).toContain("It asks nothing of cost");
  expect(renderReportPage({ ...DEMO_SUMMARY, gate: { ...gate, epsilonCost: 0.2 } })).toContain(
    "Its cost must be at most 0.2 above",
  );
});
