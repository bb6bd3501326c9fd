/** Chooses the heads that gc may fold into one: heads whose statements a later head repeats.
 *  In: the heads, whose packs match; the key that signs the fold. Out: the heads to remove, and the statements of the
 *  fold that replace them. Pure. A head of another key stays: a reader that trusts its signer need not trust ours. */
import type { Digest } from "../../base/index.ts";
import { type BookHead, foldedList, headsOf, type PackState } from "../../contract/index.ts";

export interface FoldRule {
  /** Public key that signs the fold. */
  readonly signer: string;
  /** Heads from this time on stay. */
  readonly beforeMs: number;
  /** With fewer heads, rewriting packs is not worth it. */
  readonly atLeast: number;
  /** True if the head can be removed: it is not in the pack of a living writer. */
  readonly isRemovable: (head: Digest) => boolean;
}

export interface HeadFold {
  readonly heads: ReadonlySet<Digest>;
  /** Lists of earlier folds that are removed with their heads, and merged into the new list. */
  readonly lists: readonly Digest[];
  /** Largest state of each pack among the folded heads. */
  readonly packs: ReadonlyMap<string, PackState>;
}

export function planFold(heads: ReadonlyMap<Digest, BookHead>, rule: FoldRule): HeadFold | undefined {
  const named = new Set([...heads.values()].flatMap(({ previous }) => previous));
  const folded = new Set<Digest>();
  // The ends of the chain stay: the next head references them.
  for (const [digest, { signer, atMs }] of heads)
    if (signer === rule.signer && atMs < rule.beforeMs && named.has(digest) && rule.isRemovable(digest))
      folded.add(digest);
  keepExcuses(heads, folded);
  if (folded.size < rule.atLeast) return undefined;
  const packs = new Map<string, PackState>();
  const lists: Digest[] = [];
  for (const digest of folded) {
    const head = heads.get(digest)!;
    if (head.folded !== undefined) lists.push(head.folded.list);
    for (const state of head.packs)
      if (state.entries > (packs.get(state.pack)?.entries ?? 0)) packs.set(state.pack, state);
  }
  return { heads: folded, lists, packs };
}

/** List of a fold, merged with the lists of the earlier folds. */
export function listOfFold({ heads }: HeadFold, lists: readonly Uint8Array[]): Buffer {
  return foldedList([...heads, ...lists.flatMap(headsOf)]);
}

/** A head that explains a missing pack stays as long as a remaining head names the pack. */
function keepExcuses(heads: ReadonlyMap<Digest, BookHead>, folded: Set<Digest>): void {
  const replacing = [...heads].filter(
    ([digest, { replaced }]) => replaced !== undefined && folded.has(digest),
  );
  const needed = new Set<string>();
  const stay = (head: BookHead) => {
    for (const { pack } of head.packs) needed.add(pack);
  };
  for (const [digest, head] of heads) if (!folded.has(digest)) stay(head);
  for (let isSettled = false; !isSettled; ) {
    isSettled = true;
    for (const [digest, head] of replacing) {
      if (!folded.has(digest) || !head.replaced!.some(({ pack }) => needed.has(pack))) continue;
      folded.delete(digest);
      stay(head);
      isSettled = false;
    }
  }
}
