/** Erases rollouts of a book for good and leaves a sealed tombstone, so that `verify` says erased, not broken.
 *  In: the directory of a book that this process does not hold open to write, names, a reason. Out: what went, and what
 *  else may hold text of it. Only says what would go unless `confirmed`. */
import { parseId, systemClock } from "../../base/index.ts";
import type { EraseReport } from "../../keep/erase/index.ts";
import { requireWritable, resolveErasable, useBook } from "../open/index.ts";
import { type Eraser, eraseSubjects } from "./erase-subjects.ts";

interface EraseRequest extends Eraser {
  /** The reason. It stays in the book: do not write a name into it. */
  readonly reason: string;
  /** Who erases (default: owner). */
  readonly by?: string | undefined;
  /** Also erases the shards of batches that hold rows of the rollouts. */
  readonly withBatches?: boolean | undefined;
  /** Without it nothing is removed: erasing cannot be undone. */
  readonly confirmed?: boolean | undefined;
}

/** By rollout ids, digests, or the first digits of them. */
export async function eraseRollouts(
  root: string,
  names: readonly string[],
  request: EraseRequest,
): Promise<EraseReport> {
  const { reason, by = "owner", withBatches = false, confirmed = false } = request;
  const { clock = systemClock, signer, trustedKeys } = request;
  const subjects = await useBook(root, { mode: "read", clock }, async (book) => {
    const index = await book.index();
    return names.map((name) => resolveErasable(index, name));
  });
  requireWritable(root);
  return eraseSubjects(root, {
    ...{ clock, reason, by: parseId(by, "--by"), signer, trustedKeys, withBatches, dryRun: !confirmed },
    subjects: [...new Map(subjects.map((each) => [each.content, each])).values()],
  });
}
