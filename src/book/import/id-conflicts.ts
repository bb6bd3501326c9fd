/** Notices rollouts that enter a book under an id that another content of the same policy family has already, and rollouts
 *  that were erased from it. Contents of different families do not compete: each use of a book selects one family.
 *  In: contents, a group at a time: one look into the index for each. Out: one warning with their number, or a refusal.
 *  The index is that of the start of the import: ids that come twice in one file are the reader's to refuse. */
import { type Digest, plural, RollbookError, short } from "../../base/index.ts";
import { RolloutContent, Tombstone } from "../../contract/index.ts";
import type { BookIndex } from "../open/index.ts";
import { type ImportWarning, sharesFamily } from "./import-watch.ts";

type Content = { readonly digest: Digest; readonly record: Pick<RolloutContent, "rolloutId" | "streams"> };

/** Ids that the warning lists. */
const LISTED = 20;

export class IdConflicts {
  readonly #index: BookIndex;
  readonly #hasErased: boolean;
  readonly #listed: string[] = [];
  #count = 0;
  /** Of those, the rollouts whose new content is the one that is used. */
  #used = 0;

  constructor(index: BookIndex) {
    this.#index = index;
    this.#hasErased = index.ofKind(Tombstone.kind).length > 0;
  }

  /** Before they are written. Refuses what was erased. */
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
      // As admission chooses between them.
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
