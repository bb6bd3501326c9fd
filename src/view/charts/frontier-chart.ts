/** Draws policies by cost and quality, with the line that random mixtures of single models reach. */
import { drawing, horizontalAxis, label, type Plot, verticalAxis } from "./frame.ts";
import { element, type Markup, type MarkupElement, place } from "./markup.ts";
import { linearScale, numberText, textWidth } from "./scale.ts";

type FrontierKind = "model" | "behaviour" | "served" | "candidate" | "optimum";

interface FrontierMark {
  readonly name: string;
  readonly kind: FrontierKind;
  /** Mean cost of a rollout, in US dollars. */
  readonly costUsd: number;
  /** Mean quality of a rollout. */
  readonly quality: number;
}

const [WIDTH, HEIGHT] = [720, 340];
const PLOT: Plot = { left: 44, right: 690, top: 40, bottom: 280 };

/** Costs in dollars are shown in a suitable unit; any other unit is shown unchanged. */
export function frontierChart(points: readonly FrontierMark[], costUnit = "USD"): MarkupElement {
  const unit =
    costUnit === "USD"
      ? unitOf(Math.max(...points.map(({ costUsd }) => costUsd)))
      : { factor: 1, name: costUnit };
  const costs = points.map(({ costUsd }) => costUsd * unit.factor);
  const x = linearScale(costs, { from: PLOT.left + 16, to: PLOT.right - 16 });
  const y = linearScale(
    points.map(({ quality }) => quality),
    { from: PLOT.bottom, to: PLOT.top },
  );
  const placed = points.map((point, i) => ({ ...point, x: x.at(costs[i]!), y: y.at(point.quality) }));
  const hull = upperHull(placed.filter(({ kind }) => kind === "model"));
  return drawing(
    "frontier-chart",
    {
      ...{ width: WIDTH, height: HEIGHT, title: "Cost and quality" },
      description: points
        .map(
          ({ name, kind, costUsd, quality }) =>
            `${name} (${kind}): ${numberText(quality, 3)} at ${numberText(costUsd * unit.factor, 3)} ${unit.name}`,
        )
        .join("; "),
    },
    [
      ...verticalAxis(y, PLOT, "quality of a rollout"),
      ...horizontalAxis(x, PLOT, `cost of a rollout, ${unit.name}`),
      hull.length < 2
        ? undefined
        : element("polyline", {
            points: hull.map((each) => `${place(each.x)},${place(each.y)}`).join(" "),
            class: "mixture",
          }),
      ...placed.map(mark),
      ...labelsOf(placed, hull),
    ].filter((each) => each !== undefined),
  );
}

function unitOf(most: number): { factor: number; name: string } {
  if (most >= 0.5) return { factor: 1, name: "US dollars" };
  return most >= 0.005
    ? { factor: 100, name: "US cents" }
    : { factor: 1000, name: "thousandths of a US dollar" };
}

type Placed = FrontierMark & { readonly x: number; readonly y: number };

/** Both shape and colour distinguish the kinds. */
function mark({ kind, name, x, y, quality }: Placed): MarkupElement {
  const said = element("title", {}, `${name} (${kind}): quality ${numberText(quality, 4)}`);
  switch (kind) {
    case "model":
      return element("circle", { cx: x, cy: y, r: 4.5, class: "model" }, said);
    case "behaviour":
      return element("rect", { x: x - 4.5, y: y - 4.5, width: 9, height: 9, class: "behaviour" }, said);
    case "candidate":
      return element("circle", { cx: x, cy: y, r: 4, class: "candidate" }, said);
    case "served":
      return element("circle", { cx: x, cy: y, r: 6.5, class: "served" }, said);
    case "optimum":
      return element(
        "path",
        { d: `M${place(x)} ${place(y - 7)}l7 7l-7 7l-7 -7z`, class: "optimum-mark" },
        said,
      );
    default:
      return kind satisfies never;
  }
}

/** Upper convex hull of the models: values that a random mixture of two models reaches. y grows downwards. */
function upperHull(points: readonly Placed[]): Placed[] {
  const hull: Placed[] = [];
  for (const point of [...points].sort((a, b) => a.x - b.x || a.y - b.y)) {
    if (hull.at(-1)?.x === point.x) continue;
    while (hull.length >= 2 && turn(hull.at(-2)!, hull.at(-1)!, point) <= 0) hull.pop();
    hull.push(point);
  }
  // Beyond the best model, a higher cost brings no higher quality.
  const best = hull.reduce((top, each, i) => (each.y < hull[top]!.y ? i : top), 0);
  return hull.slice(0, best + 1);
}

function turn(a: Placed, b: Placed, c: Placed): number {
  return (b.x - a.x) * (c.y - a.y) - (b.y - a.y) * (c.x - a.x);
}

const IMPORTANCE: readonly FrontierKind[] = ["served", "optimum", "behaviour", "model", "candidate"];

/** Places each name right, left, above or below its mark, so that it covers neither a mark nor another name. */
function labelsOf(points: readonly Placed[], hull: readonly Placed[]): Markup[] {
  const around = ({ x, y }: { x: number; y: number }, by: number): Plot => {
    return { left: x - by, right: x + by, top: y - by, bottom: y + by };
  };
  const taken = [...points.map((each) => around(each, 7)), ...alongLine(hull).map((each) => around(each, 1))];
  const ordered = [...points].sort((a, b) => IMPORTANCE.indexOf(a.kind) - IMPORTANCE.indexOf(b.kind));
  return ordered.map((point) => {
    const spots = spotsOf(point);
    const free = spots.find(
      ({ box }) =>
        box.left >= PLOT.left &&
        box.right <= WIDTH &&
        box.bottom <= PLOT.bottom - 2 &&
        !taken.some((each) => overlap(each, box)),
    );
    const { box, ...at } = free ?? spots[0]!;
    taken.push(box);
    return label(point.name, { ...at, style: `${point.kind}-name` });
  });
}

/** Points along a line, so close together that no name fits between two of them. */
function alongLine(line: readonly Placed[]): { x: number; y: number }[] {
  return line.slice(1).flatMap((to, i) => {
    const from = line[i]!;
    const parts = Math.ceil(Math.hypot(to.x - from.x, to.y - from.y) / 6);
    return Array.from({ length: parts }, (_, part) => ({
      x: from.x + ((to.x - from.x) * part) / parts,
      y: from.y + ((to.y - from.y) * part) / parts,
    }));
  });
}

function spotsOf({ name, x, y }: Placed) {
  const width = textWidth(name);
  const spot = (at: number, base: number, anchor: "middle" | "end" | undefined) => {
    const left = anchor === "middle" ? at - width / 2 : anchor === "end" ? at - width : at;
    return {
      ...{ x: at, y: base, box: { left, right: left + width, top: base - 11, bottom: base + 3 } },
      ...(anchor === undefined ? {} : { anchor }),
    };
  };
  return [
    spot(x + 11, y + 4, undefined),
    spot(x - 11, y + 4, "end"),
    spot(x, y - 12, "middle"),
    spot(x, y + 21, "middle"),
    spot(x + 9, y + 19, undefined),
    spot(x + 9, y - 11, undefined),
    spot(x - 9, y + 19, "end"),
    spot(x - 9, y - 11, "end"),
    spot(x + 11, y + 34, undefined),
    spot(x + 11, y - 26, undefined),
  ];
}

function overlap(a: Plot, b: Plot): boolean {
  return a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
}
