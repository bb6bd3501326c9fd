/** Builds charts as elements: functions of plain facts, drawn by the report, the viewer and the documents. Does not
 *  read files or import packages: the same functions run in a browser's page. */
export { barChart, histogram } from "./bar-chart.ts";
export { CHART_STYLE, COLOURS, svgFile } from "./chart-style.ts";
export { type Flow, type FlowLink, type FlowNode, flowChart } from "./flow-chart.ts";
export { frontierChart } from "./frontier-chart.ts";
export { intervalChart } from "./interval-chart.ts";
export { type LineageEdge, type LineageNode, lineageChart } from "./lineage-chart.ts";
export { element, type Markup, type MarkupElement, renderMarkup } from "./markup.ts";
export { rewardChart } from "./reward-chart.ts";
export { numberText } from "./scale.ts";
