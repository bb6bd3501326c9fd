/** Heads that gc folded: a list in a later head stands for them.
 *  In: the folds of a book, and where their lists are read. Out: whether a head that is not there was folded, and by whom. */
import { type Digest, reasonOf } from "../../base/index.ts";
import { type BookHead, checkFoldedList, isFolded, type ReadBlob } from "../../contract/index.ts";

interface ReportedFold {
  readonly by: Digest;
  readonly signer: string;
  readonly folded: NonNullable<BookHead["folded"]>;
}

export class FoldedHeads {
  readonly #folds: ReportedFold[] = [];
  readonly #lists: { readonly signer: string; readonly list: Uint8Array }[] = [];

  /** Its signature is good. */
  add(by: Digest, { signer, folded }: BookHead): void {
    if (folded !== undefined) this.#folds.push({ by, signer, folded });
  }

  /** Reads the lists; one that is not what its head says counts for nothing. */
  async read(read: ReadBlob, fault: (by: Digest, message: string) => void): Promise<void> {
    for (const { by, signer, folded } of this.#folds)
      try {
        const blob = await read(folded.list);
        if (blob === undefined) continue; // the head that names it is reported
        checkFoldedList(blob.bytes, folded.heads);
        this.#lists.push({ signer, list: blob.bytes });
      } catch (error) {
        fault(by, reasonOf(error));
      }
  }

  /** The keys that say so. */
  signersOf(head: Digest): string[] {
    return this.#lists.filter(({ list }) => isFolded(head, list)).map(({ signer }) => signer);
  }
}
