/** A routing dataset that was written, on a terminal. */
import type { RoutingMeta } from "../../convert/index.ts";
import { plural, thousands } from "../format.ts";

export function renderDataset(meta: RoutingMeta, out: string): string {
  const sources = Object.entries(meta.by_source).map(([source, count]) => `${thousands(count)} ${source}`);
  return `${plural(meta.rows, "row")} (${sources.join(", ") || "none"}), ${thousands(meta.labelled)} labelled, ${thousands(meta.with_propensity)} with propensity: ${out}\n`;
}
