/** The sidecar `.meta.json` of a routing dataset: its rows and units, by source, labelled and with propensities. */
import { ENOUGH_UNITS } from "../judge/ope/index.ts";
import type { LoggedRow } from "../learn/index.ts";
import { IdTable } from "./id-table.ts";

export interface RoutingMeta {
  schema: "rollbook.routing-meta.v1";
  rows: number;
  /** Number of distinct tasks. */
  units: number;
  /** Largest number of candidates in a row. */
  candidates: number;
  labelled: number;
  with_propensity: number;
  /** Smallest logged probability of a choice. Null if no probability was logged. */
  least_propensity: number | null;
  by_source: Record<string, number>;
  filters: Record<string, string>;
  below_recommended: boolean;
  recommended: number;
}

export class MetaTally {
  rows = 0;
  #units = 0;
  #candidates = 0;
  readonly #tasks = new IdTable();
  #labelled = 0;
  #withPropensity = 0;
  #leastPropensity = Number.POSITIVE_INFINITY;
  /** True while every row has the outcomes of all its candidates, also of masked ones: only then does a judge need no
   *  estimate. Training needs those of the selectable candidates. */
  isFull = true;
  readonly #bySource: Record<string, number> = {};

  add(row: LoggedRow): void {
    const { source, reward, propensity, task, candidates } = row;
    this.isFull &&= candidates.every(({ outcome }) => outcome !== undefined);
    this.rows++;
    if (this.#tasks.add(task, this.rows) === undefined) this.#units++;
    this.#candidates = Math.max(this.#candidates, candidates.filter(({ selectable }) => selectable).length);
    this.#bySource[source] = (this.#bySource[source] ?? 0) + 1;
    if (reward !== null) this.#labelled++;
    if (propensity === null) return;
    this.#withPropensity++;
    this.#leastPropensity = Math.min(this.#leastPropensity, propensity);
  }

  meta(filters: Record<string, string>): RoutingMeta {
    return {
      schema: "rollbook.routing-meta.v1",
      rows: this.rows,
      units: this.#units,
      candidates: this.#candidates,
      labelled: this.#labelled,
      with_propensity: this.#withPropensity,
      least_propensity: this.#withPropensity === 0 ? null : this.#leastPropensity,
      by_source: { ...this.#bySource },
      filters,
      below_recommended: this.#units < ENOUGH_UNITS,
      recommended: ENOUGH_UNITS,
    };
  }
}
