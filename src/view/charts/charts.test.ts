import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { lineChart } from "../../../bench/climb/line-chart.ts";
import {
  element,
  flowChart,
  frontierChart,
  intervalChart,
  lineageChart,
  type Markup,
  renderMarkup,
  rewardChart,
  svgFile,
} from "./index.ts";
import { linearScale } from "./scale.ts";

/** All elements of a tree, including its root. */
function elementsIn(node: Markup): Exclude<Markup, string>[] {
  return typeof node === "string" ? [] : [node, ...node.children.flatMap(elementsIn)];
}

const numbersIn = (node: Markup) =>
  elementsIn(node).flatMap(({ attributes }) =>
    Object.values(attributes).flatMap((value) =>
      typeof value === "number" ? [value] : (value.match(/NaN|Infinity/g) ?? []).map(Number),
    ),
  );

describe("markup", () => {
  it("writes text and attributes of records as text, whatever they hold", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary-ascii" }), (text) => {
        const html = renderMarkup(element("p", { title: text }, text));
        expect(html.match(/</g)).toHaveLength(2);
        expect(html.match(/"/g)).toHaveLength(2);
      }),
    );
    expect(renderMarkup(element("p", {}, "<script>&\u202e\u0000"))).toBe("<p>&lt;script&gt;&amp;��</p>");
  });

  it("leaves out what is undefined", () => {
    expect(renderMarkup(element("g", { a: undefined, b: 1 / 3 }, undefined, ["x"]))).toBe(
      '<g b="0.33">x</g>',
    );
  });
});

describe("a scale", () => {
  it("has round ticks around all values, and places them in order", () => {
    const finite = fc.double({ min: -1e6, max: 1e6, noNaN: true });
    fc.assert(
      fc.property(fc.array(finite, { minLength: 1 }), (values) => {
        const { low, high, ticks, at } = linearScale(values, { from: 0, to: 100 });
        const room = 1e-9 * Math.max(1, Math.abs(low), Math.abs(high));
        expect(low).toBeLessThanOrEqual(Math.min(...values) + room);
        expect(high).toBeGreaterThanOrEqual(Math.max(...values) - room);
        expect(ticks.length).toBeLessThanOrEqual(8);
        expect([at(low), at(high)]).toEqual([0, 100]);
      }),
    );
  });

  it("writes all ticks with the same digits", () => {
    const { ticks, label } = linearScale([0.52, 0.97], { from: 0, to: 1 });
    expect(ticks.map(label)).toEqual(["0.5", "0.6", "0.7", "0.8", "0.9", "1.0"]);
    expect(linearScale([-2, 2], { from: 0, to: 1 }).ticks.map(label)[0]).toBe("−2.0");
  });
});

describe("charts", () => {
  const value = fc.double({ min: -5, max: 5, noNaN: true });

  it("of rewards have a place for every window, and none that is not a number", () => {
    const window = fc.record({
      mean: value,
      half: fc.double({ min: 0, max: 2, noNaN: true }),
      served: value,
    });
    fc.assert(
      fc.property(fc.array(window, { minLength: 1, maxLength: 12 }), value, (windows, optimum) => {
        const chart = rewardChart({
          windows: windows.map(({ mean, half, served }, i) => ({
            ...{ window: i + 1, servedValue: served, released: i % 2 === 0 },
            reward: { mean, low: mean - half, high: mean + half },
          })),
          ...{ startValue: 0, optimum, level: 0.95 },
        });
        expect(numbersIn(chart).every(Number.isFinite)).toBe(true);
        const marks = elementsIn(chart).filter(({ attributes }) => attributes.class === "observed-mean");
        expect(marks).toHaveLength(windows.length);
      }),
    );
  });

  it("show what they can where no exact value is known, or nothing was observed", () => {
    for (const windows of [[], [{ window: 1, released: false }]])
      expect(numbersIn(rewardChart({ windows, level: 0.9 })).every(Number.isFinite)).toBe(true);
    const row = { name: "a", good: false, note: "no estimate" };
    expect(renderMarkup(intervalChart({ title: "t", axis: "x", rows: [row] }))).toContain("no estimate");
  });

  it("of lines name every line with its last value, also where all values are equal", () => {
    const lines = [0.5, 0.5].map((value, i) => ({
      ...{ name: `seed ${i}`, role: "main" as const },
      points: [[0, value] as const, [10, value] as const],
    }));
    const chart = lineChart({ title: "t", x: "window", y: "match", lines, bars: [0.5] });
    expect(numbersIn(chart).every(Number.isFinite)).toBe(true);
    for (const { name } of lines) expect(renderMarkup(chart)).toContain(`${name} 0.500`);
  });

  it("of flows conserve amounts: the bands into a bar are as high as the bar", () => {
    const chart = flowChart({
      ...{ title: "flow", unit: "rollout" },
      nodes: [
        { id: "a", column: 0, name: "considered", kind: "kept" },
        { id: "b", column: 1, name: "used", kind: "kept" },
        { id: "c", column: 1, name: "lost", kind: "lost" },
      ],
      links: [
        { from: "a", to: "b", amount: 75 },
        { from: "a", to: "c", amount: 25 },
      ],
    });
    const heights = elementsIn(chart)
      .filter(({ tag }) => tag === "rect")
      .map(({ attributes }) => attributes.height as number);
    expect(heights).toEqual([220, 165, 55]);
    expect(renderMarkup(chart)).toContain("<desc>75 rollouts from considered to used; 25 rollouts");
  });

  it("of cost and quality draw the mixtures of models that nothing cheaper beats", () => {
    const model = (name: string, costUsd: number, quality: number) => {
      return { name, kind: "model" as const, costUsd, quality };
    };
    const chart = frontierChart([
      ...[model("cheap", 0.1, 0.4), model("waste", 0.5, 0.5), model("good", 0.9, 0.9)],
      model("worse and more expensive", 1, 0.7),
    ]);
    const line = elementsIn(chart).find(({ attributes }) => attributes.class === "mixture")!;
    const marks = elementsIn(chart).filter(({ attributes }) => attributes.class === "model");
    const at = (i: number) => `${marks[i]!.attributes.cx},${marks[i]!.attributes.cy}`;
    expect(line.attributes.points).toBe(`${at(0)} ${at(2)}`);
  });

  it("of lineage leave out links to records that are not there", () => {
    const node = { kind: "batch" as const, window: 1, label: "rows", digest: "sha256:00" };
    const chart = lineageChart([{ id: "a", ...node }], [{ from: "a", to: "gone", label: "from" }]);
    expect(elementsIn(chart).filter(({ attributes }) => attributes.class === "edge")).toEqual([]);
  });

  it("stand alone as files with their own style", () => {
    const file = svgFile(rewardChart({ windows: [], level: 0.95 }));
    expect(file).toMatch(/^<svg xmlns="http:\/\/www\.w3\.org\/2000\/svg"[\s\S]*prefers-color-scheme: dark/);
  });
});
