/** The one way by which rollouts leave a book, by name or by age. In: contents. Out: what went.
 *  Also removes the cache of embeddings: a vector tells much of its text, and nothing says which texts it holds. */
import { type Clock, systemClock } from "../../base/index.ts";
import type { Signer } from "../../contract/index.ts";
import type { EraseOptions, EraseReport } from "../../keep/erase/index.ts";
import { removeEmbeddingCache } from "../embed/index.ts";
import { loadSigner, ownKeyring, trustedSet } from "../open/index.ts";

export async function eraseSubjects(
  root: string,
  { clock = systemClock, signer = () => loadSigner(ownKeyring()), trustedKeys, ...what }: Erasing,
): Promise<EraseReport> {
  // Loaded when asked for, as most commands erase nothing.
  const { eraseRollouts } = await import("../../keep/erase/index.ts");
  return eraseRollouts(root, {
    ...what,
    ...{ clock, signer: signer(), trusted: new Set(trustedKeys ?? trustedSet(ownKeyring())) },
    removeCopies: () => removeEmbeddingCache(root),
  });
}

/** Who erases, and when. */
export interface Eraser {
  readonly clock?: Clock | undefined;
  readonly signer?: (() => Signer | undefined) | undefined;
  /** Whose word counts that a pack was replaced (default: the user's own key and those listed beside it). */
  readonly trustedKeys?: Iterable<string> | undefined;
}

type Erasing = Eraser & Pick<EraseOptions, "subjects" | "reason" | "by" | "withBatches" | "dryRun">;
