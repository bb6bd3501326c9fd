/** Erases rollouts of a book permanently and leaves a sealed tombstone, so that `verify` reports them as erased, not
 *  broken.
 *  In: the directory of a book that this process does not hold open to write, names, a reason. Out: the erased data,
 *  and other places that may hold its text. Without `confirmed`, only reports what would be erased. */
import { parseId, systemClock } from "../../base/index.ts";
import type { EraseReport } from "../../keep/erase/index.ts";
import { requireWritable, resolveErasable, useBook } from "../open/index.ts";
import { type Eraser, eraseSubjects } from "./erase-subjects.ts";

interface EraseRequest extends Eraser {
  /** Reason of the erasure. It stays in the book: do not write a name into it. */
  readonly reason: string;
  /** Person or program that erases (default: owner). */
  readonly by?: string | undefined;
  /** Also erases the shards of batches that hold rows of the rollouts. */
  readonly withBatches?: boolean | undefined;
  /** Without `confirmed` nothing is removed, because erasing cannot be undone. */
  readonly confirmed?: boolean | undefined;
}

/** Erases the rollouts given by ids, digests, or the first digits of either. */
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
