/** The sidecar `.meta.json` of a routing dataset: how many rows it holds, of which sources, labelled and with propensities. */
import type { LoggedRow } from "../learn/index.ts";

/** Below this many rows a learned router can hardly be judged: a fifth of them judge, and where a quarter of those speak of
 *  the policy, the effective sample size is the 50 that an estimate needs. */
const RECOMMENDED_ROWS = 1000;

export interface RoutingMeta {
  schema: "rollbook.routing-meta.v1";
  rows: number;
  labelled: number;
  with_propensity: number;
  by_source: Record<string, number>;
  filters: Record<string, string>;
  below_recommended: boolean;
  recommended: number;
}

/** Counts rows as they pass. */
export class MetaTally {
  rows = 0;
  #labelled = 0;
  #withPropensity = 0;
  readonly #bySource: Record<string, number> = {};

  add({ source, reward, propensity }: LoggedRow): void {
    this.rows++;
    this.#bySource[source] = (this.#bySource[source] ?? 0) + 1;
    if (reward !== null) this.#labelled++;
    if (propensity !== null) this.#withPropensity++;
  }

  meta(filters: Record<string, string>): RoutingMeta {
    return {
      schema: "rollbook.routing-meta.v1",
      rows: this.rows,
      labelled: this.#labelled,
      with_propensity: this.#withPropensity,
      by_source: { ...this.#bySource },
      filters,
      below_recommended: this.rows < RECOMMENDED_ROWS,
      recommended: RECOMMENDED_ROWS,
    };
  }
}
