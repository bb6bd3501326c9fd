/** Renders a learning curve as a plot for a terminal.
 *  In: points. Out: lines, the training loss as dots and the held-out loss as circles, on one scale. Pure. */
import type { CurvePoint } from "../../learn/index.ts";
import { figure } from "../format.ts";

const WIDTH = 60;
const HEIGHT = 10;

export function renderCurve(curve: readonly CurvePoint[]): string {
  const columns = resample(curve);
  const values = columns.flatMap(({ loss, heldOut }) => [
    loss,
    ...(heldOut === undefined ? [] : [heldOut.loss]),
  ]);
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const place = (value: number) => Math.round(((high - value) / (high - low || 1)) * (HEIGHT - 1));
  const rows = Array.from({ length: HEIGHT }, () => Array<string>(columns.length).fill(" "));
  columns.forEach(({ loss, heldOut }, x) => {
    rows[place(loss)]![x] = "·";
    if (heldOut !== undefined) rows[place(heldOut.loss)]![x] = "o";
  });
  const label = (row: number) => (row === 0 ? figure(high) : row === HEIGHT - 1 ? figure(low) : "");
  const lines = rows.map((row, y) => `${label(y).padStart(9)} │${row.join("")}`.trimEnd());
  const steps = `${"".padStart(9)} └${"─".repeat(columns.length)} step ${curve.at(-1)!.step}`;
  const marks = columns.some(({ heldOut }) => heldOut !== undefined)
    ? "· training, o held out"
    : "· training";
  return `loss (${marks})\n${lines.join("\n")}\n${steps}\n`;
}

function resample(curve: readonly CurvePoint[]): readonly CurvePoint[] {
  if (curve.length <= WIDTH) return curve;
  return Array.from({ length: WIDTH }, (_, x) => curve[Math.round((x * (curve.length - 1)) / (WIDTH - 1))]!);
}
