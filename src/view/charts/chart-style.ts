/** Defines the style of all charts, in light and dark: for the report, the viewer and standalone drawings. Few colours:
 *  ink for observed values, blue for the policy, green for the optimum, red for refused or lost items. */
import { element, type MarkupElement, renderMarkup } from "./markup.ts";

export const COLOURS = `:root {
  color-scheme: light dark;
  --ground: #ffffff; --raised: #f5f6f8; --line: #dcdfe4; --ink: #1b1f24; --faint: #59626d;
  --accent: #0b5cad; --good: #1a7f37; --bad: #b3261e;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ground: #16181c; --raised: #1f2228; --line: #3a3f48; --ink: #e4e7eb; --faint: #a3acb8;
    --accent: #6cb2f5; --good: #57c37a; --bad: #f28b82;
  }
}
@media print {
  :root {
    --ground: #ffffff; --raised: #f5f6f8; --line: #c9cdd3; --ink: #000000; --faint: #444b54;
    --accent: #0b4f96; --good: #15662c; --bad: #9b1c15;
  }
}
`;

export const CHART_STYLE = `.chart { font: 12px system-ui, "Segoe UI", "DejaVu Sans", sans-serif; max-width: 100%; height: auto; overflow: visible; font-variant-numeric: tabular-nums; }
.chart text { fill: var(--ink); stroke: var(--ground); stroke-width: 3px; paint-order: stroke; stroke-linejoin: round; }
.chart .box text, .chart.flow-chart text { stroke: none; }
.chart .faint, .chart .axis-name, .chart .model-name, .chart .behaviour-name, .chart .candidate-name { fill: var(--faint); }
.chart .amount { font-weight: 600; }
.chart .grid { stroke: var(--line); stroke-width: 1; }
.chart .axis { stroke: var(--faint); }
.chart .optimum { stroke: var(--good); stroke-width: 1.5; stroke-dasharray: 5 4; }
.chart .optimum-mark { fill: var(--good); }
.chart .optimum-label, .chart .optimum-name { fill: var(--good); }
.chart .served-line { fill: none; stroke: var(--accent); stroke-width: 2.5; stroke-linejoin: round; }
.chart .served { fill: var(--accent); stroke: var(--ground); stroke-width: 2; }
.chart .served.kept { fill: var(--ground); stroke: var(--accent); }
.chart .served-label, .chart .served-name { fill: var(--accent); font-weight: 600; }
.chart .observed, .chart .exact { fill: none; stroke: var(--ink); stroke-width: 1.5; }
.chart .observed-mean { fill: var(--ink); }
.chart .model { fill: var(--ground); stroke: var(--faint); stroke-width: 1.5; }
.chart .behaviour { fill: var(--faint); }
.chart .candidate { fill: var(--ground); stroke: var(--accent); stroke-width: 1.5; }
.chart .mixture { fill: none; stroke: var(--faint); stroke-width: 1; stroke-dasharray: 2 3; }
.chart .bar { fill: var(--accent); }
.chart .band { fill: var(--accent); fill-opacity: 0.22; }
.chart .bar.lost { fill: var(--bad); }
.chart .band.lost { fill: var(--bad); }
.chart .interval { stroke-width: 2; stroke: var(--accent); }
.chart .estimate { fill: var(--accent); }
.chart .interval.bad { stroke: var(--bad); }
.chart .estimate.bad { fill: var(--ground); stroke: var(--bad); stroke-width: 2; }
.chart .bad-name { fill: var(--bad); }
.chart .edge { fill: none; stroke: var(--faint); stroke-width: 1.2; stroke-opacity: 0.75; }
.chart .box rect { fill: var(--raised); stroke: var(--line); }
.chart .box.refused rect { stroke: var(--bad); stroke-dasharray: 3 2; }
.chart .box.release rect { stroke: var(--accent); stroke-width: 1.5; }
.chart .digest { fill: var(--faint); font: 10.5px ui-monospace, "DejaVu Sans Mono", monospace; }
`;

/** Renders a chart as an SVG file, with its style inside. */
export function svgFile(chart: MarkupElement): string {
  const ground = element("rect", { width: "100%", height: "100%", fill: "var(--ground)" });
  const style = element("style", {}, `${COLOURS}${CHART_STYLE}`);
  const [title, description, ...rest] = chart.children;
  return `${renderMarkup({ ...chart, children: [title!, description!, style, ground, ...rest] })}\n`;
}
