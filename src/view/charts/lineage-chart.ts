/** Draws the lineage of records: one lane for each window, one column for each kind of record. */
import { drawing, label } from "./frame.ts";
import { element, type Markup, type MarkupElement, place } from "./markup.ts";

export interface LineageNode {
  /** Unique in the graph. */
  readonly id: string;
  readonly kind: "rollouts" | "batch" | "revision" | "verdict" | "release";
  /** Window number, from 1. */
  readonly window: number;
  readonly label: string;
  /** Digest of the sealed record. */
  readonly digest: string;
}

export interface LineageEdge {
  readonly from: string;
  readonly to: string;
  readonly label: string;
}

const COLUMNS: readonly { readonly kind: LineageNode["kind"]; readonly name: string }[] = [
  { kind: "rollouts", name: "rollouts" },
  { kind: "batch", name: "batch" },
  { kind: "revision", name: "policy" },
  { kind: "verdict", name: "verdict" },
  { kind: "release", name: "serves" },
];

const [LEFT, TOP] = [14, 34];
const [BOX_WIDTH, BOX_HEIGHT] = [118, 36];
const COLUMN = 150;
const ROW = 46;
const LANE_GAP = 26;
const WIDTH = LEFT + 4 * COLUMN + BOX_WIDTH + 1;

interface PlacedMark extends LineageNode {
  readonly x: number;
  readonly y: number;
  /** Start of its lane. */
  readonly lane: number;
}

export function lineageChart(nodes: readonly LineageNode[], links: readonly LineageEdge[]): MarkupElement {
  const { placed, height } = placeMarks(nodes);
  const byId = new Map(placed.map((mark) => [mark.id, mark]));
  const known = links.flatMap((each) => {
    const [from, to] = [byId.get(each.from), byId.get(each.to)];
    return from === undefined || to === undefined ? [] : [{ ...each, from, to }];
  });
  return drawing(
    "lineage-chart",
    {
      ...{ width: WIDTH, height, title: "Lineage" },
      description: known.map(({ from, to, label: how }) => `${to.label} ${how} ${from.label}`).join("; "),
    },
    [
      ...COLUMNS.map(({ name }, column) =>
        label(name, { x: LEFT + column * COLUMN, y: 14, style: "axis-name" }),
      ),
      ...known.map(({ from, to, label: how }) =>
        element(
          "path",
          { d: route(from, to), class: "edge" },
          element("title", {}, `${to.label} ${how} ${from.label}`),
        ),
      ),
      ...placed.map(box),
    ],
  );
}

function placeMarks(nodes: readonly LineageNode[]): { placed: PlacedMark[]; height: number } {
  const windows = [...new Set(nodes.map(({ window }) => window))].sort((a, b) => a - b);
  const placed: PlacedMark[] = [];
  let top = TOP;
  for (const window of windows) {
    const own = COLUMNS.map(({ kind }) =>
      nodes.filter((each) => each.window === window && each.kind === kind),
    );
    const rows = Math.max(1, ...own.map((column) => column.length));
    own.forEach((column, c) => {
      // A short column is centred in its lane.
      const shift = ((rows - column.length) * ROW) / 2;
      column.forEach((mark, row) => {
        placed.push({ ...mark, x: LEFT + c * COLUMN, y: top + shift + row * ROW, lane: top });
      });
    });
    top += rows * ROW - (ROW - BOX_HEIGHT) + LANE_GAP;
  }
  return { placed, height: top - LANE_GAP + 6 };
}

/** An edge to the right is a curve; an edge back to the left follows the space between two lanes. */
function route(from: PlacedMark, to: PlacedMark): string {
  const [x1, y1] = [place(from.x + BOX_WIDTH), place(from.y + BOX_HEIGHT / 2)];
  const [x2, y2] = [place(to.x), place(to.y + BOX_HEIGHT / 2)];
  if (to.x > from.x) {
    const bend = place((COLUMN - BOX_WIDTH) * 0.7);
    return `M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}`;
  }
  const middle = place(from.x + BOX_WIDTH / 2);
  const start = place(from.y + BOX_HEIGHT);
  const between = place(to.lane - LANE_GAP / 2);
  const left = LEFT - 9;
  return `M${middle} ${start}V${between - 6}q0 6 -6 6H${left + 6}q-6 0 -6 6V${y2 - 6}q0 6 6 6H${x2}`;
}

function box({ kind, label: text, digest, x, y }: PlacedMark): Markup {
  return element(
    "g",
    { class: `box ${kind}` },
    element("title", {}, `${text}, ${digest}`),
    element("rect", { x, y, width: BOX_WIDTH, height: BOX_HEIGHT, rx: 4 }),
    label(cut(text, 16), { x: x + 8, y: y + 15 }),
    label(digest.replace(/^sha256:/, "").slice(0, 12), { x: x + 8, y: y + 29, style: "digest" }),
  );
}

function cut(text: string, most: number): string {
  return text.length <= most ? text : `${text.slice(0, most - 1)}…`;
}
