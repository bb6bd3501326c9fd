/** Detects that the experiment ran these tasks before with another agent or other options. In: the first rows, and what
 *  the book holds. Out: how the earlier launch differs. All settings enter the ids of rollouts, so every rollout runs
 *  again. The user must be able to see why. Reads only ids. */
import type { Digest } from "../../../base/index.ts";
import type { Book } from "../../../store/index.ts";
import type { RowForm } from "../work/index.ts";
import { type LaunchSettings, type Overrides, planner } from "../worker/index.ts";

/** A few rows are enough: the same launch given again has the same first rows. */
const ROWS = 8;

export interface EarlierRuns {
  /** Digests of agents that have run in this book. */
  readonly agents: readonly Digest[];
  /** True if the experiment has rollouts of this task. */
  readonly hasRollouts: (task: Digest) => boolean;
}

export type Earlier =
  | { readonly kind: "same" }
  | { readonly kind: "other-agent"; readonly agent: Digest }
  | { readonly kind: "other-options" };

export class EarlierLaunch {
  readonly #book: Pick<Book, "has">;
  readonly #runs: EarlierRuns;
  readonly #plans: readonly { agent: Digest; plan: ReturnType<typeof planner> }[];
  #rows = 0;

  constructor(
    settings: LaunchSettings,
    { book, runs, form }: { book: Pick<Book, "has">; runs: EarlierRuns; form?: RowForm },
  ) {
    this.#book = book;
    this.#runs = runs;
    this.#plans = runs.agents
      .filter((agent) => agent !== settings.agent)
      .map((agent) => ({
        agent,
        plan: planner({ ...settings, agent }, form === undefined ? {} : { form }),
      }));
  }

  /** Returns the earlier launch that ran this row, on the first match only. */
  async find(
    row: unknown,
    overrides: Overrides | undefined,
    planned: { readonly task: Digest; readonly assignment: Digest },
  ): Promise<Earlier | undefined> {
    if (this.#rows++ >= ROWS) return undefined;
    const earlier = await this.#earlier(row, overrides, planned);
    if (earlier !== undefined) this.#rows = ROWS;
    return earlier;
  }

  async #earlier(
    row: unknown,
    overrides: Overrides | undefined,
    { task, assignment }: { readonly task: Digest; readonly assignment: Digest },
  ): Promise<Earlier | undefined> {
    if (await this.#book.has(assignment)) return { kind: "same" };
    for (const { agent, plan } of this.#plans) {
      const { assignments } = plan(row, overrides);
      if (await this.#book.has(assignments[0]!.assignment.digest)) return { kind: "other-agent", agent };
    }
    return this.#runs.hasRollouts(task) ? { kind: "other-options" } : undefined;
  }
}
