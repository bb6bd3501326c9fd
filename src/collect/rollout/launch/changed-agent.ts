/** Detects that this launch ran before with another version of its agent. In: the first rows, the versions in the book.
 *  Out: the version that ran. The digest of the agent enters the ids of rollouts, so all of them run again. The user
 *  must be able to see why. Reads only ids. */
import type { Digest } from "../../../base/index.ts";
import type { Book } from "../../../store/index.ts";
import type { RowForm } from "../work/index.ts";
import { type LaunchSettings, type Overrides, planner } from "../worker/index.ts";

/** A few rows are enough: the same launch given again has the same first rows. */
const ROWS = 8;

export class ChangedAgent {
  readonly #book: Pick<Book, "has">;
  readonly #plans: readonly { digest: Digest; plan: ReturnType<typeof planner> }[];
  #rows = 0;

  constructor(
    settings: LaunchSettings,
    { book, versions, form }: { book: Pick<Book, "has">; versions: readonly Digest[]; form?: RowForm },
  ) {
    this.#book = book;
    this.#plans = versions
      .filter((digest) => digest !== settings.agent)
      .map((digest) => ({
        digest,
        plan: planner({ ...settings, agent: digest }, form === undefined ? {} : { form }),
      }));
  }

  /** Returns the earlier version that ran this row, on the first match only. */
  async find(row: unknown, overrides: Overrides | undefined): Promise<Digest | undefined> {
    if (this.#rows++ >= ROWS) return undefined;
    for (const { digest, plan } of this.#plans) {
      const { assignments } = plan(row, overrides);
      if (!(await this.#book.has(assignments[0]!.assignment.digest))) continue;
      this.#rows = ROWS;
      return digest;
    }
    return undefined;
  }
}
