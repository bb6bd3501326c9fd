/** Draws the climb: npx tsx bench/climb/plot.ts bench/climb/curves.json docs/images/climb.svg.
 *  In: held-out sampled exact match by window, from the results of run.mjs. Out: an SVG. */
import { readFileSync, writeFileSync } from "node:fs";
import { svgFile } from "../../src/view/charts/index.ts";
import { type ChartLine, lineChart } from "./line-chart.ts";

const [from, to] = process.argv.slice(2) as [string, string];
const { lines } = JSON.parse(readFileSync(from, "utf8")) as { lines: readonly ChartLine[] };
const chart = lineChart({
  title: "Held-out sampled exact match by window",
  x: "window, or step of the plain loop",
  y: "held-out sampled exact match; bars at 0.63 and 0.80",
  lines,
  bars: [0.63, 0.8],
});
writeFileSync(to, svgFile(chart));
