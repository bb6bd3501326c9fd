/** Lines over one axis, each labelled at its end: a figure by steps, windows or rows. */
import {
  drawing,
  horizontalAxis,
  label,
  line,
  type Plot,
  verticalAxis,
} from "../../src/view/charts/frame.ts";
import { element, type MarkupElement, place } from "../../src/view/charts/markup.ts";
import { spread } from "../../src/view/charts/reward-chart.ts";
import { linearScale, numberText } from "../../src/view/charts/scale.ts";

export interface ChartLine {
  readonly name: string;
  readonly points: readonly (readonly [x: number, y: number])[];
  /** `main`: the subject of the chart. `beside`: a comparison. */
  readonly role: "main" | "beside";
}

interface LineSeries {
  readonly title: string;
  readonly x: string;
  readonly y: string;
  readonly lines: readonly ChartLine[];
  /** Target values on the vertical axis. */
  readonly bars?: readonly number[];
}

const [WIDTH, HEIGHT] = [720, 340];
const PLOT: Plot = { left: 44, right: 540, top: 40, bottom: 280 };
const STYLES = { main: "served-line", beside: "mixture" } as const;

export function lineChart({ title, x: xName, y: yName, lines, bars = [] }: LineSeries): MarkupElement {
  const points = lines.flatMap((each) => each.points);
  const x = linearScale(
    points.map(([at]) => at),
    { from: PLOT.left, to: PLOT.right },
  );
  const y = linearScale([...points.map(([, value]) => value), ...bars], { from: PLOT.bottom, to: PLOT.top });
  const ends = lines.flatMap(({ name, points, role }) => {
    const last = points.at(-1);
    if (last === undefined) return [];
    const text = `${name} ${numberText(last[1], 3)}`;
    return [{ y: y.at(last[1]), text, style: role === "main" ? "served-label" : "faint" }];
  });
  const path = (each: ChartLine) =>
    each.points.map(([at, value]) => `${place(x.at(at))},${place(y.at(value))}`).join(" ");
  return drawing(
    "line-chart",
    { ...{ width: WIDTH, height: HEIGHT, title }, description: ends.map(({ text }) => text).join("; ") },
    [
      ...verticalAxis(y, PLOT, yName),
      ...horizontalAxis(x, PLOT, xName),
      ...bars.map((each) => line([PLOT.left, y.at(each)], [PLOT.right, y.at(each)], "optimum")),
      ...lines.map((each) => element("polyline", { points: path(each), class: STYLES[each.role] })),
      ...spread(ends).map((each) =>
        label(each.text, { x: PLOT.right + 10, y: each.y + 4, style: each.style }),
      ),
    ],
  );
}
