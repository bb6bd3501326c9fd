/** The sidecar `.meta.json` of a routing dataset: how many rows and units it holds, of which sources, labelled and with
 *  propensities. */
import type { LoggedRow } from "../learn/index.ts";
import { IdTable } from "./id-table.ts";

/** Below this many units a learned router can hardly be judged: a fifth of them judge, and where a quarter of those speak of
 *  the policy, the effective sample size is the 50 that an estimate needs. Rows of one unit are no independent evidence. */
export const RECOMMENDED_UNITS = 1000;

export interface RoutingMeta {
  schema: "rollbook.routing-meta.v1";
  rows: number;
  /** Different tasks. */
  units: number;
  /** The most that any row could choose among. */
  candidates: number;
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
  #units = 0;
  #candidates = 0;
  readonly #tasks = new IdTable();
  #labelled = 0;
  #withPropensity = 0;
  readonly #bySource: Record<string, number> = {};

  add({ source, reward, propensity, task, candidates }: LoggedRow): void {
    this.rows++;
    if (this.#tasks.add(task, this.rows) === undefined) this.#units++;
    this.#candidates = Math.max(this.#candidates, candidates.filter(({ selectable }) => selectable).length);
    this.#bySource[source] = (this.#bySource[source] ?? 0) + 1;
    if (reward !== null) this.#labelled++;
    if (propensity !== null) this.#withPropensity++;
  }

  meta(filters: Record<string, string>): RoutingMeta {
    return {
      schema: "rollbook.routing-meta.v1",
      rows: this.rows,
      units: this.#units,
      candidates: this.#candidates,
      labelled: this.#labelled,
      with_propensity: this.#withPropensity,
      by_source: { ...this.#bySource },
      filters,
      below_recommended: this.#units < RECOMMENDED_UNITS,
      recommended: RECOMMENDED_UNITS,
    };
  }
}
