/** Draws amounts that flow from left to right: columns of bars, bands between them, widths by amount. */
import { drawing } from "./frame.ts";
import { element, type Markup, type MarkupElement, place } from "./markup.ts";

export interface FlowNode {
  readonly id: string;
  /** Column number from 0, left to right. */
  readonly column: number;
  readonly name: string;
  /** `lost` marks amounts that are not used further. */
  readonly kind: "kept" | "lost";
}

export interface FlowLink {
  readonly from: string;
  readonly to: string;
  readonly amount: number;
}

export interface Flow {
  readonly title: string;
  /** Name of one unit of the amount, e.g. "rollout". */
  readonly unit: string;
  readonly nodes: readonly FlowNode[];
  readonly links: readonly FlowLink[];
}

const WIDTH = 720;
const BAR = 9;
const GAP = 26;
const [TOP, HEIGHT] = [24, 220];
/** Space for the names of the last column. */
const RIGHT = 200;

interface PlacedNode extends FlowNode {
  readonly amount: number;
  readonly x: number;
  readonly y: number;
  readonly height: number;
}

export function flowChart({ title, unit, nodes, links }: Flow): MarkupElement {
  const placed = placeNodes(nodes, links);
  const bottom = Math.max(...placed.map(({ y, height }) => y + height));
  return drawing(
    "flow-chart",
    { ...{ width: WIDTH, height: bottom + 24, title }, description: describe({ nodes, links, unit }) },
    [...bandsOf(placed, links), ...placed.flatMap((node) => drawNode(node, placed))],
  );
}

function placeNodes(nodes: readonly FlowNode[], links: readonly FlowLink[]): PlacedNode[] {
  const amounts = new Map(nodes.map(({ id }) => [id, amountOf(id, links)]));
  const columns = Math.max(...nodes.map(({ column }) => column)) + 1;
  const most = Math.max(
    1e-9,
    ...Array.from({ length: columns }, (_, column) =>
      nodes.reduce((sum, each) => sum + (each.column === column ? amounts.get(each.id)! : 0), 0),
    ),
  );
  const nextY = new Array<number>(columns).fill(TOP);
  return nodes.map((node) => {
    const amount = amounts.get(node.id)!;
    // A thin bar must stay visible.
    const height = Math.max(2, (amount / most) * HEIGHT);
    const y = nextY[node.column]!;
    nextY[node.column] = y + height + GAP;
    const x = columns === 1 ? 0 : (node.column / (columns - 1)) * (WIDTH - RIGHT - BAR);
    return { ...node, amount, x, y, height };
  });
}

function amountOf(id: string, links: readonly FlowLink[]): number {
  const sum = (own: readonly FlowLink[]) => own.reduce((total, { amount }) => total + amount, 0);
  return Math.max(sum(links.filter(({ to }) => to === id)), sum(links.filter(({ from }) => from === id)));
}

/** Bands leave and enter a bar in the order of their links. */
function bandsOf(placed: readonly PlacedNode[], links: readonly FlowLink[]): Markup[] {
  const byId = new Map(placed.map((node) => [node.id, node]));
  const out = new Map<string, number>();
  const into = new Map<string, number>();
  return links
    .filter(({ amount }) => amount > 0)
    .map(({ from, to, amount }) => {
      const [a, b] = [byId.get(from)!, byId.get(to)!];
      const [wideA, wideB] = [(amount / a.amount) * a.height, (amount / b.amount) * b.height];
      const [y1, y2] = [a.y + (out.get(from) ?? 0), b.y + (into.get(to) ?? 0)];
      out.set(from, (out.get(from) ?? 0) + wideA);
      into.set(to, (into.get(to) ?? 0) + wideB);
      const [x1, x2] = [place(a.x + BAR), place(b.x)];
      const middle = place((x1 + x2) / 2);
      const curve = (from1: number, to1: number) => `C${middle} ${place(from1)} ${middle} ${place(to1)}`;
      return element(
        "path",
        {
          d: `M${x1} ${place(y1)}${curve(y1, y2)} ${x2} ${place(y2)}V${place(y2 + wideB)}${curve(y2 + wideB, y1 + wideA)} ${x1} ${place(y1 + wideA)}Z`,
          class: b.kind === "lost" ? "band lost" : "band",
        },
        element("title", {}, `${a.name} to ${b.name}: ${amount}`),
      );
    });
}

/** Names of the last column are beside their bars, the others above. */
function drawNode(node: PlacedNode, all: readonly PlacedNode[]): Markup[] {
  const { x, y, height, amount, name, kind, column } = node;
  const last = column === Math.max(...all.map((each) => each.column));
  const bar = element("rect", { x, y, width: BAR, height, class: kind === "lost" ? "bar lost" : "bar" });
  if (last)
    return [
      bar,
      element(
        "text",
        { x: x + BAR + 8, y: y + Math.min(height / 2, 30) + 4 },
        element("tspan", { class: "amount" }, String(amount)),
        ` ${name}`,
      ),
    ];
  return [
    bar,
    element("text", { x: x, y: y - 7 }, element("tspan", { class: "amount" }, String(amount)), ` ${name}`),
  ];
}

function describe({ nodes, links, unit }: Pick<Flow, "nodes" | "links" | "unit">): string {
  const name = (id: string) => nodes.find((node) => node.id === id)!.name;
  return links
    .map(({ from, to, amount }) => `${amount} ${unit}s from ${name(from)} to ${name(to)}`)
    .join("; ");
}
