/** Draws estimates with their intervals, one line each, on one axis. A second mark shows the exact value if it is
 *  known. */
import { drawing, horizontalAxis, label, line, type Plot } from "./frame.ts";
import { element, type Markup, type MarkupElement } from "./markup.ts";
import { linearScale, numberText } from "./scale.ts";

interface IntervalRow {
  readonly name: string;
  /** Rows of one group are drawn together; the name of the group appears once, at the left. */
  readonly group?: string | undefined;
  /** Absent if the data cannot support an estimate. */
  readonly value?: number | undefined;
  /** A null end is open. */
  readonly low?: number | null | undefined;
  readonly high?: number | null | undefined;
  readonly exact?: number | undefined;
  /** True if the row meets its requirement. */
  readonly good: boolean;
  /** Text beside the row, e.g. the reason of a refusal. */
  readonly note: string;
}

interface IntervalSeries {
  readonly title: string;
  readonly axis: string;
  readonly rows: readonly IntervalRow[];
  /** Vertical lines: values that must be exceeded, or that can be reached. */
  readonly lines?: readonly { readonly value: number; readonly name: string }[];
}

const WIDTH = 720;
const LINE = 24;
const GROUP_GAP = 12;

export function intervalChart({ title, axis, rows, lines = [] }: IntervalSeries): MarkupElement {
  const top = lines.length > 0 ? 26 : 8;
  const plot: Plot = { left: 150, right: 540, top, bottom: top + heightOf(rows) };
  const values = rows.flatMap(({ value, low, high, exact }) =>
    [value, low, high, exact].filter((each) => typeof each === "number"),
  );
  const x = linearScale([...values, ...lines.map(({ value }) => value)], {
    ...{ from: plot.left, to: plot.right },
  });
  return drawing(
    "interval-chart",
    {
      ...{ width: WIDTH, height: plot.bottom + 46, title },
      description: rows
        .map(({ group, name, value, low, high, note }) =>
          value === undefined
            ? `${nameOf(group, name)}: no estimate, ${note}`
            : `${nameOf(group, name)}: ${numberText(value, 3)} from ${endText(low)} to ${endText(high)}, ${note}`,
        )
        .join("; "),
    },
    [
      ...x.ticks.map((tick) => line([x.at(tick), plot.top], [x.at(tick), plot.bottom], "grid")),
      ...horizontalAxis(x, plot, axis),
      ...lines.flatMap(({ value, name }) => [
        line([x.at(value), plot.top - 4], [x.at(value), plot.bottom], "optimum"),
        label(name, { x: x.at(value), y: plot.top - 10, anchor: "middle", style: "optimum-label" }),
      ]),
      ...rows.flatMap((row, i) => {
        const y = plot.top + heightOf(rows.slice(0, i + 1)) - LINE / 2;
        const first = row.group !== undefined && row.group !== rows[i - 1]?.group;
        return [
          ...(first ? [label(row.group!, { x: 0, y: y + 4, style: "faint" })] : []),
          ...drawRow(row, y, plot, x.at),
        ];
      }),
    ],
  );
}

function heightOf(rows: readonly IntervalRow[]): number {
  const gaps = rows.filter(({ group }, i) => i > 0 && group !== rows[i - 1]!.group).length;
  return rows.length * LINE + gaps * GROUP_GAP;
}

function drawRow(row: IntervalRow, y: number, plot: Plot, at: (value: number) => number): Markup[] {
  const { name, value, low, high, exact, good, note } = row;
  const style = good ? "good" : "bad";
  const from = low === undefined || low === null ? plot.left : at(low);
  const to = high === undefined || high === null ? plot.right : at(high);
  return [
    label(name, { x: plot.left - 12, y: y + 4, anchor: "end" }),
    ...(value === undefined
      ? []
      : [
          element("line", { x1: from, x2: to, y1: y, y2: y, class: `interval ${style}` }),
          element("circle", { cx: at(value), cy: y, r: 4, class: `estimate ${style}` }),
        ]),
    ...(exact === undefined
      ? []
      : [
          element(
            "path",
            { d: `M${Math.round(at(exact) * 10) / 10} ${y - 7}v14`, class: "exact" },
            element("title", {}, `exact value ${numberText(exact, 4)}`),
          ),
        ]),
    label(note, { x: plot.right + 14, y: y + 4, style: good ? "faint" : "bad-name" }),
  ];
}

function endText(end: number | null | undefined): string {
  return end === null || end === undefined ? "an open end" : numberText(end, 3);
}

function nameOf(group: string | undefined, name: string): string {
  return group === undefined ? name : `${group}, ${name}`;
}
