/** Which heads of a book gc may fold into one: those whose word a later head repeats.
 *  In: the heads, whose packs fit; the key that signs the fold. Out: the heads that go, and what the fold must say in their
 *  place. Pure. A head of another key stays: a reader who trusts its signer need not trust ours. */
import type { Digest } from "../../base/index.ts";
import { type BookHead, foldedList, headsOf, type PackState } from "../../contract/index.ts";

export interface FoldRule {
  /** The public key that signs the fold. */
  readonly signer: string;
  /** Heads from this moment on stay. */
  readonly beforeMs: number;
  /** Fewer are not worth rewriting packs. */
  readonly atLeast: number;
  /** Whether the head can be removed: no living writer has it in its pack. */
  readonly isRemovable: (head: Digest) => boolean;
}

export interface HeadFold {
  readonly heads: ReadonlySet<Digest>;
  /** Lists of earlier folds that go with their heads, and are part of the new one. */
  readonly lists: readonly Digest[];
  /** The most that folded heads say of each pack. */
  readonly packs: ReadonlyMap<string, PackState>;
}

export function planFold(heads: ReadonlyMap<Digest, BookHead>, rule: FoldRule): HeadFold | undefined {
  const named = new Set([...heads.values()].flatMap(({ previous }) => previous));
  const folded = new Set<Digest>();
  // The ends of the chain stay: the next head leads to them.
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

/** The list of a fold, with those of the folds it takes up. */
export function listOfFold({ heads }: HeadFold, lists: readonly Uint8Array[]): Buffer {
  return foldedList([...heads, ...lists.flatMap(headsOf)]);
}

/** A head that says why a pack is gone stays as long as a head that stays names the pack. */
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
