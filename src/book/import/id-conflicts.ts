/** Detects rollouts whose id another content of the same policy family in the book already has, and rollouts that were
 *  erased. Contents of different families do not conflict: each use of a book selects one family.
 *  In: groups of contents, with one index lookup per group. Out: one warning with their number, or a refusal. The index
 *  dates from the start of the import: the reader itself refuses ids that occur twice in one file. */
import { type Digest, plural, RollbookError, short } from "../../base/index.ts";
import { RolloutContent, Tombstone } from "../../contract/index.ts";
import type { BookIndex } from "../open/index.ts";
import { type ImportWarning, sharesFamily } from "./import-watch.ts";

type Content = { readonly digest: Digest; readonly record: Pick<RolloutContent, "rolloutId" | "streams"> };

/** Maximum number of ids that the warning lists. */
const LISTED = 20;

export class IdConflicts {
  readonly #index: BookIndex;
  readonly #hasErased: boolean;
  readonly #listed: string[] = [];
  #count = 0;
  /** Conflicting rollouts for which the new content is used. */
  #used = 0;

  constructor(index: BookIndex) {
    this.#index = index;
    this.#hasErased = index.ofKind(Tombstone.kind).length > 0;
  }

  /** Checks contents before they are written. Refuses erased ones. */
  see(contents: readonly Content[]): void {
    if (this.#hasErased) for (const content of contents) this.#requireNotErased(content);
    const ids = contents.map(({ record }) => record.rolloutId);
    const known = new Map<string, Digest[]>();
    for (const { id, digest } of this.#index.digestsOf(RolloutContent.kind, ids))
      known.set(id, [...(known.get(id) ?? []), digest]);
    for (const content of contents) {
      const others = (known.get(content.record.rolloutId) ?? []).filter((other) =>
        this.#compete(content, other),
      );
      if (others.length === 0) continue;
      this.#add(content.record.rolloutId);
      // Admission uses the content with the smallest digest.
      if (others.every((other) => content.digest < other)) this.#used++;
    }
  }

  warnings(): ImportWarning[] {
    if (this.#count === 0) return [];
    const [first] = this.#listed;
    return [
      {
        code: "two-contents",
        fields: { count: this.#count, used: this.#used, rollouts: this.#listed },
        message: `${plural(this.#count, "rollout")} (first ${first}) came under an id that another content of the same policy family has. Both contents are kept. Batches, training and judging use the one with the smaller digest, not the newer one. For ${this.#used} of them that is the new content. If these are other runs, give each an id of its own. If the file was corrected, to use the new contents import it into a new --book DIR, or erase the old contents by their digests (\`rollbook artifact erase\`).`,
      },
    ];
  }

  #compete({ digest, record }: Content, other: Digest): boolean {
    return other !== digest && sharesFamily(record, this.#index.record(other));
  }

  #add(rolloutId: string): void {
    this.#count++;
    if (this.#listed.length < LISTED) this.#listed.push(rolloutId);
  }

  #requireNotErased({ digest, record }: Content): void {
    const [tombstone] = this.#index.tombstonesOf(digest);
    if (tombstone === undefined) return;
    throw new RollbookError(
      "erased",
      { rollout: record.rolloutId, digest, tombstone },
      `decision ${record.rolloutId} was erased from the book on purpose, as the tombstone ${short(tombstone)} says. Leave it out of the file and import the file again.`,
    );
  }
}
