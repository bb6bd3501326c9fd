/** Draws the parts that all charts share: the drawing with its title and description, texts, axes. */
import { element, type Markup, type MarkupElement, place } from "./markup.ts";
import type { Scale } from "./scale.ts";

interface ChartFrame {
  readonly width: number;
  readonly height: number;
  /** Title of the chart; `description` gives its content in words, for people who cannot see it. */
  readonly title: string;
  readonly description: string;
}

export interface Plot {
  readonly left: number;
  readonly right: number;
  readonly top: number;
  readonly bottom: number;
}

/** `name` distinguishes charts on one page. */
export function drawing(name: string, frame: ChartFrame, children: readonly Markup[]): MarkupElement {
  const { width, height, title, description } = frame;
  return element(
    "svg",
    {
      ...{ xmlns: "http://www.w3.org/2000/svg", class: `chart ${name}`, role: "img" },
      ...{ viewBox: `0 0 ${Math.ceil(width)} ${Math.ceil(height)}`, width: Math.ceil(width) },
      ...{ height: Math.ceil(height), "aria-label": title },
    },
    element("title", {}, title),
    element("desc", {}, description),
    children,
  );
}

export function label(
  text: string,
  { x, y, anchor, style }: { x: number; y: number; anchor?: "middle" | "end"; style?: string },
): MarkupElement {
  return element("text", { x, y, "text-anchor": anchor, class: style }, text);
}

export function line(
  [x1, y1]: readonly [number, number],
  [x2, y2]: readonly [number, number],
  style: string,
): MarkupElement {
  return element("line", { x1, y1, x2, y2, class: style });
}

/** Draws horizontal grid lines with their numbers on the left, and the name of the axis above them. */
export function verticalAxis(scale: Scale, { left, right, top }: Plot, name: string): Markup[] {
  return [
    label(name, { x: 0, y: top - 18, style: "axis-name" }),
    ...scale.ticks.flatMap((tick) => [
      line([left, scale.at(tick)], [right, scale.at(tick)], "grid"),
      label(scale.label(tick), { x: left - 8, y: scale.at(tick) + 4, anchor: "end", style: "faint" }),
    ]),
  ];
}

/** Draws short ticks with their numbers below, and the name of the axis at the right end. */
export function horizontalAxis(scale: Scale, { right, bottom }: Plot, name: string): Markup[] {
  return [
    ...scale.ticks.flatMap((tick) => [
      line([scale.at(tick), bottom], [scale.at(tick), bottom + 5], "axis"),
      label(scale.label(tick), { x: scale.at(tick), y: bottom + 19, anchor: "middle", style: "faint" }),
    ]),
    label(name, { x: right, y: bottom + 38, anchor: "end", style: "axis-name" }),
  ];
}

/** Draws a vertical interval with short end lines. */
export function whisker(x: number, [low, high]: readonly [number, number], style: string): MarkupElement {
  const end = 4;
  const path = `M${place(x - end)} ${place(high)}h${2 * end}m${-end} 0V${place(low)}m${-end} 0h${2 * end}`;
  return element("path", { d: path, class: style });
}
