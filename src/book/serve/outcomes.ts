/** Reads the outcomes of router decisions from the admitted rollouts of a book.
 *  In: an open book, a family. Out: by router, one outcome for each labelled rollout in which one router made all
 *  decisions. A rollout in which the router was swapped belongs to no router; it is counted as mixed. */
import { type Digest, isRollbookError } from "../../base/index.ts";
import { type Manifest, RolloutEnvelope, type Sealed } from "../../contract/index.ts";
import type { RoutedOutcome } from "../../serve/index.ts";
import { readRecord } from "../../store/index.ts";
import type { OpenBook } from "../open/index.ts";
import { admittedRollouts } from "../rollouts/index.ts";

interface RouterOutcomes {
  readonly of: ReadonlyMap<Digest, readonly RoutedOutcome[]>;
  readonly mixed: number;
  readonly manifest?: Sealed<Manifest>;
}

/** Error codes that mean no data yet: no rollout of the family, or no such feedback. */
const NOT_YET = ["not-found", "no-rollouts"];

export class OutcomeReader {
  readonly #book: OpenBook;
  readonly #endedAtMs = new Map<Digest, number>();

  constructor(book: OpenBook) {
    this.#book = book;
  }

  async read(request: { family: string; feedback?: string | undefined }): Promise<RouterOutcomes> {
    const { family, feedback } = request;
    const admitted = await admittedRollouts(this.#book, { level: "step", family, feedback }).catch(
      (error: unknown) => {
        if (isRollbookError(error) && NOT_YET.includes(error.code)) return undefined;
        throw error;
      },
    );
    const of = new Map<Digest, RoutedOutcome[]>();
    if (admitted === undefined) return { of, mixed: 0 };
    let mixed = 0;
    for (const { rolloutId, stream, reward, revisions, envelope } of admitted.rows) {
      const [router, ...others] = new Set(revisions.map(({ revision }) => revision.digest));
      if (router === undefined || reward === null) continue;
      if (others.length > 0) {
        mixed++;
        continue;
      }
      const outcome = { id: `${rolloutId}/${stream}`, atMs: await this.#endOf(envelope), reward };
      const known = of.get(router);
      if (known === undefined) of.set(router, [outcome]);
      else known.push(outcome);
    }
    return { of, mixed, manifest: admitted.manifest };
  }

  async #endOf(envelope: Digest): Promise<number> {
    const known = this.#endedAtMs.get(envelope);
    if (known !== undefined) return known;
    const { endedAtMs } = await readRecord(this.#book.store, RolloutEnvelope, envelope);
    this.#endedAtMs.set(envelope, endedAtMs);
    return endedAtMs;
  }
}
