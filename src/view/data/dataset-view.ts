/** A routing dataset that was written, on a terminal. */
import type { RoutingMeta } from "../../convert/index.ts";
import { plural } from "../format.ts";

export function renderDataset(meta: RoutingMeta, out: string): string {
  const sources = Object.entries(meta.by_source).map(([source, count]) => `${count} ${source}`);
  return `${plural(meta.rows, "row")} (${sources.join(", ") || "none"}), ${meta.labelled} labelled, ${meta.with_propensity} with propensity: ${out}\n`;
}
