/** Draws bars that start at 0: horizontal for named bars, vertical for a histogram. */
import { drawing, label } from "./frame.ts";
import { element, type MarkupElement } from "./markup.ts";

interface Bar {
  readonly name: string;
  readonly value: number;
}

const LINE = 20;
const [NAME, LENGTH] = [170, 270];

export function barChart(title: string, bars: readonly Bar[]): MarkupElement {
  const most = mostOf(bars);
  return drawing(
    "bar-chart",
    { ...{ width: 520, height: bars.length * LINE, title }, description: describe(bars) },
    bars.flatMap(({ name, value }, i) => [
      label(name.slice(0, 24), { x: NAME, y: i * LINE + 14, anchor: "end" }),
      element("rect", {
        ...{ x: NAME + 8, y: i * LINE + 3, width: (value / most) * LENGTH, height: LINE - 6, class: "bar" },
      }),
      label(String(value), { x: NAME + 14 + (value / most) * LENGTH, y: i * LINE + 14 }),
    ]),
  );
}

export function histogram(title: string, bars: readonly Bar[]): MarkupElement {
  const most = mostOf(bars);
  const HEIGHT = 26;
  return drawing(
    "histogram",
    { ...{ width: Math.max(1, bars.length * 8), height: HEIGHT, title }, description: describe(bars) },
    bars.map(({ name, value }, i) =>
      element(
        "rect",
        {
          ...{ x: i * 8, y: HEIGHT - (value / most) * HEIGHT, width: 7, height: (value / most) * HEIGHT },
          class: "bar",
        },
        element("title", {}, `${name}: ${value}`),
      ),
    ),
  );
}

function mostOf(bars: readonly Bar[]): number {
  return Math.max(1e-12, ...bars.map(({ value }) => value));
}

function describe(bars: readonly Bar[]): string {
  return bars.map(({ name, value }) => `${name}: ${value}`).join("; ");
}
