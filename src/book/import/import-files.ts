/** Imports records into a book: sealed, checked, signed, durable. A line enters completely or not at all.
 *  In: sources. Out: a summary. Without `strict`, only the bad line is refused; with it, one bad line refuses
 *  everything. */
import { type Digest, isRollbookError, RollbookError } from "../../base/index.ts";
import { Attestation, type Signer } from "../../contract/index.ts";
import { type BlobStore, makeSealer, type Sealer } from "../../store/index.ts";
import type { BookIndex } from "../open/index.ts";
import { ImportCheck } from "./import-check.ts";
import { type ImportWarning, ImportWatch } from "./import-watch.ts";
import { type Prepared, type PsionicAnswers, prepare } from "./prepare.ts";
import { type ImportSource, type Item, readItems } from "./read-items.ts";
import { signedBy } from "./signed-by.ts";

interface ImportOptions {
  readonly book: BlobStore;
  readonly index: BookIndex;
  readonly signer?: Signer | undefined;
  readonly answers: PsionicAnswers;
  readonly strict: boolean;
  readonly onRefusal: (error: RollbookError) => void;
  /** Called with warnings about imported records that may cause a surprise later. */
  readonly onWarning: (warning: ImportWarning) => void;
  readonly onProgress: (items: number) => void;
}

export interface ImportSummary {
  /** Records new to the book; a rollout with all its parts counts once. */
  imported: number;
  /** How many of the imported records are rollouts. */
  rollouts: number;
  /** Records that were already in the book, byte for byte. */
  already: number;
  refused: number;
  /** Records in the book with lost or damaged parts: written again. `gc` then removes the damaged copies. */
  repaired: number;
  /** Known records that this key had not signed before and has signed now. */
  signed: number;
}

/** Enough pending rollouts to share a signature and an fsync, few enough to bound memory. */
const IN_FLIGHT = 256;

export async function importFiles(
  sources: readonly ImportSource[],
  options: ImportOptions,
): Promise<ImportSummary> {
  if (options.strict) {
    const rehearsal = await readAll(sources, options, { write: async () => {}, sign: async () => false });
    if (rehearsal.refused > 0) return { ...rehearsal, imported: 0, rollouts: 0 };
  }
  const writer = new Writer(options);
  const watch = new ImportWatch(options.index);
  const summary = await readAll(sources, options, {
    async write(prepared) {
      watch.see(prepared);
      await writer.add(prepared);
    },
    async sign(prepared) {
      watch.see(prepared);
      return writer.sign(prepared);
    },
  });
  await writer.finish();
  for (const warning of watch.warnings()) options.onWarning(warning);
  return summary;
}

interface Destination {
  write(prepared: Prepared): Promise<void>;
  /** Signs a record that is already in the book. Returns false if there is nothing to add. */
  sign(prepared: Prepared): Promise<boolean>;
}

async function readAll(
  sources: readonly ImportSource[],
  options: ImportOptions,
  to: Destination,
): Promise<ImportSummary> {
  const admission = new ImportCheck(options.book, options.index);
  const summary: ImportSummary = { imported: 0, rollouts: 0, already: 0, refused: 0, repaired: 0, signed: 0 };
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
        if (there && (await isWhole(options.book, prepared.blobs))) {
          summary.already++;
          if (await to.sign(prepared)) summary.signed++;
        } else {
          await to.write(prepared);
          summary[there ? "repaired" : "imported"]++;
          if (!there && prepared.content !== undefined) summary.rollouts++;
        }
      }
    }
  }
  return summary;
}

/** Reads every part back, because an existing envelope does not prove that its content exists. */
export async function isWhole(
  book: Pick<BlobStore, "get">,
  blobs: readonly { readonly digest: Digest }[],
): Promise<boolean> {
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

/** Prepares all parts of an item, or returns the reason why none of them enters. */
async function admitItem(
  item: Item,
  admission: ImportCheck,
  answers: PsionicAnswers,
): Promise<Prepared[] | RollbookError> {
  if ("error" in item) return item.error;
  try {
    const all = prepare(item, answers);
    for (const prepared of all) await admission.admit(prepared, item.where);
    return all;
  } catch (error) {
    if (!isRollbookError(error)) throw error;
    if (item.line === undefined) return error;
    return new RollbookError(error.code, { ...error.fields, line: item.line }, error.message, {
      cause: error,
    });
  }
}

class Writer {
  readonly #signing: Sealer;
  readonly #plain: Sealer;
  readonly #isSigned: (root: Digest) => Promise<boolean>;
  /** Digests signed in this run; the index does not list them yet. */
  readonly #handled = new Set<Digest>();
  #pending: Promise<void>[] = [];

  constructor({ book, index, signer }: ImportOptions) {
    this.#signing = makeSealer(book, signer);
    this.#plain = makeSealer(book);
    this.#isSigned = signer === undefined ? async () => true : signedBy(signer.publicKey, { book, index });
  }

  /** Adds a missing signature to a record of the book. */
  async sign(prepared: Prepared): Promise<boolean> {
    const { root } = prepared;
    if (isSignature(prepared) || this.#handled.has(root) || (await this.#isSigned(root))) return false;
    await this.add({ ...prepared, blobs: [] });
    return true;
  }

  async add(prepared: Prepared): Promise<void> {
    const { root, blobs } = prepared;
    this.#handled.add(root);
    const sealer = isSignature(prepared) ? this.#plain : this.#signing;
    const durable = sealer.add({ envelope: { digest: root }, blobs });
    durable.catch(() => {}); // awaited below, perhaps much later than it fails
    this.#pending.push(durable);
    if (this.#pending.length >= IN_FLIGHT) await this.finish();
  }

  async finish(): Promise<void> {
    await Promise.all(this.#pending.splice(0));
  }
}

/** A signature needs no signature. */
function isSignature({ records }: Prepared): boolean {
  return records[0]!.kind === Attestation.kind;
}
