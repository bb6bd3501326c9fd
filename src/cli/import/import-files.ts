/** Imports records into a book: sealed, checked, signed, durable. A line enters whole or not at all.
 *  In: sources. Out: a summary. Without `strict` a bad line costs itself only; with it, one bad line costs everything. */
import { isRollbookError, type RollbookError } from "../../base/index.ts";
import { Attestation, type Signer } from "../../contract/index.ts";
import type { Book } from "../../store/index.ts";
import { makeSealer, type Sealer } from "../../store/sealer.ts";
import type { BookIndex } from "../book-index.ts";
import { Admission } from "./admission.ts";
import { type Prepared, type PsionicAnswers, prepare } from "./prepare.ts";
import { type Item, readItems, type Source } from "./read-items.ts";

export interface ImportOptions {
  readonly book: Book;
  readonly index: BookIndex;
  readonly signer?: Signer | undefined;
  readonly answers: PsionicAnswers;
  readonly strict: boolean;
  readonly onRefusal: (error: RollbookError) => void;
  readonly onProgress: (items: number) => void;
}

export interface ImportSummary {
  /** Records new to the book; a rollout with all its parts counts once. */
  imported: number;
  /** In the book already, byte for byte. */
  already: number;
  refused: number;
  /** In the book, but with parts lost or damaged: written again. `gc` then removes the damaged copies. */
  repaired: number;
}

/** Enough waiting rollouts to share a signature and an fsync, few enough to bound memory. */
const IN_FLIGHT = 256;

export async function importFiles(
  sources: readonly Source[],
  options: ImportOptions,
): Promise<ImportSummary> {
  if (options.strict) {
    const rehearsal = await readAll(sources, options, async () => {});
    if (rehearsal.refused > 0) return { ...rehearsal, imported: 0 };
  }
  const writer = new Writer(options);
  const summary = await readAll(sources, options, (prepared) => writer.add(prepared));
  await writer.finish();
  return summary;
}

async function readAll(
  sources: readonly Source[],
  options: ImportOptions,
  write: (prepared: Prepared) => Promise<void>,
): Promise<ImportSummary> {
  const admission = new Admission(options.book, options.index);
  const summary: ImportSummary = { imported: 0, already: 0, refused: 0, repaired: 0 };
  let items = 0;
  for (const source of sources) {
    for await (const item of readItems(source)) {
      options.onProgress(++items);
      const ready = await admitItem(item, admission, options.answers);
      if (isRollbookError(ready)) {
        summary.refused++;
        options.onRefusal(ready);
        continue;
      }
      for (const prepared of ready) {
        const there = await options.book.has(prepared.root);
        if (there && (await isWhole(options.book, prepared))) summary.already++;
        else {
          await write(prepared);
          summary[there ? "repaired" : "imported"]++;
        }
      }
    }
  }
  return summary;
}

/** Reads every part back: an envelope that stands does not prove that its content does. */
async function isWhole(book: Pick<Book, "get">, { blobs }: Prepared): Promise<boolean> {
  for (const { digest } of blobs) {
    try {
      if ((await book.get(digest)) === undefined) return false;
    } catch (error) {
      if (!isRollbookError(error)) throw error;
      return false;
    }
  }
  return true;
}

/** All that an item consists of, or the reason why none of it enters. */
async function admitItem(
  item: Item,
  admission: Admission,
  answers: PsionicAnswers,
): Promise<Prepared[] | RollbookError> {
  if ("error" in item) return item.error;
  try {
    const all = prepare(item, answers);
    for (const prepared of all) await admission.admit(prepared, item.where);
    return all;
  } catch (error) {
    if (isRollbookError(error)) return error;
    throw error;
  }
}

class Writer {
  readonly #signing: Sealer;
  readonly #plain: Sealer;
  #pending: Promise<void>[] = [];

  constructor({ book, signer }: ImportOptions) {
    this.#signing = makeSealer(book, signer);
    this.#plain = makeSealer(book);
  }

  async add({ root, blobs, records }: Prepared): Promise<void> {
    // A signature needs no signature.
    const sealer = records[0]!.kind === Attestation.kind ? this.#plain : this.#signing;
    const durable = sealer.add({ envelope: { digest: root }, blobs });
    durable.catch(() => {}); // awaited below, perhaps much later than it fails
    this.#pending.push(durable);
    if (this.#pending.length >= IN_FLIGHT) await this.finish();
  }

  async finish(): Promise<void> {
    await Promise.all(this.#pending.splice(0));
  }
}
