/** Finds the record of a produced revision that a book already has.
 *  In: an open book, the record that is to be sealed. Out: the known record, or undefined. Throws if another policy has
 *  the same id, because samples of the two would be indistinguishable. A record that was only logged does not count: it
 *  knows neither its parent nor its training. */
import { RollbookError, short } from "../../base/index.ts";
import { isOnlyLogged, PolicyRevision, type Sealed, seal } from "../../contract/index.ts";
import { readSealed } from "../../keep/admit/index.ts";
import type { OpenBook } from "../open/index.ts";

/** Refuses an id that a produced revision has. For a training with new rows: its weights would differ. */
export async function requireUnusedId(
  book: OpenBook,
  { family, id }: { readonly family: string; readonly id: string },
): Promise<void> {
  for (const { fields, digest, ...each } of (await book.index()).ofKind(PolicyRevision.kind)) {
    if (each.family !== family || each.id !== id || fields.producedAtMs === 0) continue;
    throw new RollbookError(
      "revision-exists",
      { family, id, known: fields.digest },
      `the book has a revision ${id} of ${family} (${short(digest)}), and the learner has new rows. No row was learned. Give the new revision another --id.`,
    );
  }
}

export async function knownRevision(
  book: OpenBook,
  { family, id, digest, parent }: Pick<PolicyRevision, "family" | "id" | "digest" | "parent">,
): Promise<Sealed<PolicyRevision> | undefined> {
  for (const each of (await book.index()).ofKind(PolicyRevision.kind)) {
    if (each.family !== family || each.id !== id) continue;
    const known = await readSealed((one) => book.store.get(one), PolicyRevision, each.digest);
    const isSame = known.record.digest === digest;
    if (isSame && isOnlyLogged(known.record)) continue;
    if (isSame && known.record.parent?.digest === parent?.digest) return seal(PolicyRevision, known.record);
    throw new RollbookError(
      "revision-exists",
      { family, id, known: known.record.digest, made: digest },
      `the book has a revision ${id} of ${family} with other weights or another parent (${short(known.record.digest)}). Give the new one another --id.`,
    );
  }
  return undefined;
}
