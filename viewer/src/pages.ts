/** The visible rows of a long list: requested page by page, cached, and discarded when the filters change. */
import type { RolloutQuery, RolloutRow } from "../../src/book/rollouts/rollout-row.ts";
import type { RolloutWindow } from "../../src/book/rollouts/rollout-window.ts";
import type { Source } from "./source.ts";

const PAGE = 200;

export class RowPages {
  readonly #source: Source;
  readonly #query: RolloutQuery;
  readonly #pages = new Map<number, readonly RolloutRow[] | "asked">();

  constructor(source: Source, query: RolloutQuery) {
    this.#source = source;
    this.#query = query;
  }

  rowAt(index: number): RolloutRow | undefined {
    const page = this.#pages.get(Math.floor(index / PAGE));
    return page === undefined || page === "asked" ? undefined : page[index % PAGE];
  }

  /** Resolves with the first new answer; undefined if all of these rows are present or already requested. */
  async need(from: number, to: number): Promise<RolloutWindow | undefined> {
    let answer: RolloutWindow | undefined;
    for (let page = Math.floor(from / PAGE); page <= Math.floor(Math.max(from, to - 1) / PAGE); page++) {
      if (this.#pages.has(page)) continue;
      this.#pages.set(page, "asked");
      try {
        answer = await this.#source.rollouts(this.#query, { offset: page * PAGE, limit: PAGE });
        this.#pages.set(page, answer.rows);
      } catch (error) {
        this.#pages.delete(page);
        throw error;
      }
    }
    return answer;
  }
}
