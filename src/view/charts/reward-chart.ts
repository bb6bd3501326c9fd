/** Draws reward by window: observed values with intervals, the exact value of the serving policy, and the optimum. */
import { drawing, label, line, type Plot, verticalAxis, whisker } from "./frame.ts";
import { element, type MarkupElement } from "./markup.ts";
import { linearScale, numberText } from "./scale.ts";

interface RewardWindow {
  readonly window: number;
  /** Observed mean reward of the window's rollouts. */
  readonly reward?: { readonly mean: number; readonly low: number; readonly high: number } | undefined;
  /** Exact value of the policy that serves after the window, if it is known. */
  readonly servedValue?: number | undefined;
  readonly released: boolean;
}

interface RewardSeries {
  readonly windows: readonly RewardWindow[];
  /** Exact value of the policy that collected first; `optimum` is that of the best one. */
  readonly startValue?: number | undefined;
  readonly optimum?: number | undefined;
  /** Confidence level of the intervals, e.g. 0.95. */
  readonly level: number;
}

const [WIDTH, HEIGHT] = [720, 320];
const PLOT: Plot = { left: 44, right: 560, top: 40, bottom: 272 };

export function rewardChart(series: RewardSeries): MarkupElement {
  const { windows, startValue, optimum, level } = series;
  const values = windows.flatMap(({ reward, servedValue }) => [
    ...(reward === undefined ? [] : [reward.low, reward.high]),
    ...(servedValue === undefined ? [] : [servedValue]),
  ]);
  const known = [startValue, optimum].filter((each) => each !== undefined);
  const y = linearScale([...values, ...known], { from: PLOT.bottom, to: PLOT.top });
  const served = servedPoints(series);
  const observed = windows.flatMap(({ window, reward }) =>
    reward === undefined ? [] : [{ window, ...reward }],
  );
  const x = (window: number) =>
    PLOT.left + ((window + 0.5) / (windows.length + 1)) * (PLOT.right - PLOT.left);
  const last = observed.at(-1);
  const ends = [
    ...(optimum === undefined
      ? []
      : [{ y: y.at(optimum), text: `optimum ${numberText(optimum, 3)}`, style: "optimum-label" }]),
    ...(served.length === 0
      ? []
      : [
          {
            y: y.at(served.at(-1)!.value),
            text: `serves, exact ${numberText(served.at(-1)!.value, 3)}`,
            style: "served-label",
          },
        ]),
    ...(last === undefined
      ? []
      : [
          {
            y: y.at(last.mean),
            text: `observed ${numberText(last.mean, 3)} ± ${numberText((last.high - last.low) / 2, 3)}`,
            style: "observed-label",
          },
        ]),
  ];
  return drawing(
    "reward-chart",
    {
      ...{ width: WIDTH, height: HEIGHT, title: "Reward by window" },
      description: describe(series),
    },
    [
      ...verticalAxis(y, PLOT, `mean reward of a rollout, ${numberText(100 * level, 0)} % intervals`),
      ...[...(startValue === undefined ? [] : [0]), ...windows.map(({ window }) => window)].map((window) =>
        label(window === 0 ? "start" : `window ${window}`, {
          ...{ x: x(window), y: PLOT.bottom + 22, anchor: "middle" as const, style: "faint" },
        }),
      ),
      ...(optimum === undefined
        ? []
        : [line([PLOT.left, y.at(optimum)], [PLOT.right, y.at(optimum)], "optimum")]),
      ...(served.length < 2 ? [] : [servedLine(served.map((each) => [x(each.window), y.at(each.value)]))]),
      ...served.map((each) =>
        element(
          "circle",
          {
            ...{ cx: x(each.window), cy: y.at(each.value), r: 5 },
            class: each.released ? "served" : "served kept",
          },
          element("title", {}, `${each.name}: exact value ${numberText(each.value, 4)}`),
        ),
      ),
      ...observed.flatMap(({ window, mean, low, high }) => [
        whisker(x(window) - 12, [y.at(low), y.at(high)], "observed"),
        element(
          "rect",
          { x: x(window) - 15.5, y: y.at(mean) - 3.5, width: 7, height: 7, class: "observed-mean" },
          element(
            "title",
            {},
            `window ${window}: observed mean ${numberText(mean, 4)}, from ${numberText(low, 4)} to ${numberText(high, 4)}`,
          ),
        ),
      ]),
      ...spread(ends).map((each) =>
        label(each.text, { x: PLOT.right + 10, y: each.y + 4, style: each.style }),
      ),
    ],
  );
}

interface ServedPoint {
  readonly window: number;
  readonly value: number;
  readonly name: string;
  readonly released: boolean;
}

function servedPoints({ windows, startValue }: RewardSeries): ServedPoint[] {
  return [
    ...(startValue === undefined
      ? []
      : [{ window: 0, value: startValue, name: "the first behaviour", released: true }]),
    ...windows.flatMap(({ window, servedValue, released }) =>
      servedValue === undefined
        ? []
        : [{ window, value: servedValue, name: `served after window ${window}`, released }],
    ),
  ];
}

function servedLine(points: readonly (readonly [number, number])[]): MarkupElement {
  return element("polyline", {
    ...{ points: points.map((each) => each.map((value) => value.toFixed(1)).join(",")).join(" ") },
    class: "served-line",
  });
}

/** Moves labels at least one line apart, in the same order. */
export function spread<T extends { readonly y: number; readonly text: string }>(labels: readonly T[]): T[] {
  const LINE = 17;
  const sorted = [...labels].sort((a, b) => a.y - b.y);
  const placed: T[] = [];
  for (const each of sorted)
    placed.push({ ...each, y: Math.max(each.y, (placed.at(-1)?.y ?? -LINE) + LINE) });
  return placed;
}

function describe({ windows, startValue, optimum }: RewardSeries): string {
  const each = windows.map(({ window, reward, servedValue, released }) =>
    [
      `window ${window}:`,
      ...(reward === undefined ? [] : [`observed mean ${numberText(reward.mean, 3)},`]),
      ...(servedValue === undefined ? [] : [`exact value of what serves ${numberText(servedValue, 3)},`]),
      released ? "a new policy was released" : "the old policy was kept",
    ].join(" "),
  );
  return [
    ...(startValue === undefined ? [] : [`start: exact value ${numberText(startValue, 3)}`]),
    ...each,
    ...(optimum === undefined ? [] : [`known optimum: ${numberText(optimum, 3)}`]),
  ].join("; ");
}
