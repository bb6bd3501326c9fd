/** Renders the report on a written routing dataset for a terminal. */
import type { RoutingMeta } from "../../convert/index.ts";
import { plural, thousands } from "../format.ts";

/** `isFull`: every row has the outcomes of all its candidates. */
export function renderDataset(
  meta: RoutingMeta,
  { out, isFull }: { readonly out: string; readonly isFull: boolean },
): string {
  const counts = Object.entries(meta.by_source);
  const sources = counts.map(([source, count]) =>
    counts.length === 1 ? source : `${source} ${thousands(count)}`,
  );
  const source = sources.length === 0 ? "" : ` (data source ${sources.join(", ")})`;
  const labels =
    isFull && meta.rows > 0 && meta.with_propensity === 0
      ? `${thousands(meta.rows)} with the outcomes of all candidates (no propensity is needed)`
      : `${thousands(meta.labelled)} with a reward; ${thousands(meta.with_propensity)} with a propensity`;
  return `${plural(meta.rows, "row")} written to ${out}${source}; ${labels}\n`;
}
