/** Renders the report on a written routing dataset for a terminal. */
import type { RoutingMeta } from "../../convert/index.ts";
import { plural, thousands } from "../format.ts";

export function renderDataset(meta: RoutingMeta, out: string): string {
  const counts = Object.entries(meta.by_source);
  const sources = counts.map(([source, count]) =>
    counts.length === 1 ? source : `${source} ${thousands(count)}`,
  );
  const source = sources.length === 0 ? "" : ` (data source ${sources.join(", ")})`;
  return `${plural(meta.rows, "row")} written to ${out}${source}; ${thousands(meta.labelled)} with a reward; ${thousands(meta.with_propensity)} with a propensity\n`;
}
