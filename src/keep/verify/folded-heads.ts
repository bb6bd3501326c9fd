/** Heads that gc folded: a list in a later head stands for them.
 *  In: the folds of a book, and a reader for their lists. Out: an answer if a missing head was folded, and the signing
 *  keys. */
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

  /** The signature of the head must be valid. */
  add(by: Digest, { signer, folded }: BookHead): void {
    if (folded !== undefined) this.#folds.push({ by, signer, folded });
  }

  /** Reads the lists; a list that does not match its head is ignored. */
  async read(read: ReadBlob, fault: (by: Digest, message: string) => void): Promise<void> {
    for (const { by, signer, folded } of this.#folds)
      try {
        const blob = await read(folded.list);
        if (blob === undefined) continue; // the head that names the list is reported
        checkFoldedList(blob.bytes, folded.heads);
        this.#lists.push({ signer, list: blob.bytes });
      } catch (error) {
        fault(by, reasonOf(error));
      }
  }

  /** Keys that signed a fold of this head. */
  signersOf(head: Digest): string[] {
    return this.#lists.filter(({ list }) => isFolded(head, list)).map(({ signer }) => signer);
  }
}
