/** Erases rollouts of a book: the only code path for erasure, by name or by age.
 *  In: contents. Out: the erased data. Also removes the embedding cache: a vector reveals much of its text, and the
 *  cache does not record its texts. */
import { type Clock, systemClock } from "../../base/index.ts";
import type { Signer } from "../../contract/index.ts";
import type { EraseOptions, EraseReport } from "../../keep/erase/index.ts";
import { removeEmbeddingCache } from "../embed/index.ts";
import { loadSigner, ownKeyring, trustedSet } from "../open/index.ts";

export async function eraseSubjects(
  root: string,
  { clock = systemClock, signer = () => loadSigner(ownKeyring()), trustedKeys, ...what }: Erasing,
): Promise<EraseReport> {
  // Loaded on demand, because most commands erase nothing.
  const { eraseRollouts } = await import("../../keep/erase/index.ts");
  return eraseRollouts(root, {
    ...what,
    ...{ clock, signer: signer(), trusted: new Set(trustedKeys ?? trustedSet(ownKeyring())) },
    removeCopies: () => removeEmbeddingCache(root),
  });
}

/** Identity and clock of the erasure. */
export interface Eraser {
  readonly clock?: Clock | undefined;
  readonly signer?: (() => Signer | undefined) | undefined;
  /** Keys whose signed statement that a pack was replaced counts (default: the user's own key and the keys listed
   *  beside it). */
  readonly trustedKeys?: Iterable<string> | undefined;
}

type Erasing = Eraser & Pick<EraseOptions, "subjects" | "reason" | "by" | "withBatches" | "dryRun">;
