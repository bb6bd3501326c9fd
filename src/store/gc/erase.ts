/** Removes records from a book permanently, with the blobs that only they need: the bytes leave packs and large files.
 *  In: the digests of records. Out: the planned or completed removal. Rewrites packs as gc does: a kill at any point
 *  loses nothing else, and the same call finishes the work. Does not decide which records to remove, and writes no
 *  record of the removal. */
import { type Clock, type Digest, RollbookError } from "../../base/index.ts";
import type { ErasedBlob, SignHead } from "../../contract/index.ts";
import { openBook } from "../book.ts";
import { remoteOf } from "../remote/index.ts";
import { Collection, withSurvey } from "./gc.ts";
import type { Survey, SurveyedErasure } from "./gc-survey.ts";

interface ErasureOptions {
  readonly clock: Clock;
  /** Signs the head that names the replaced packs. */
  readonly sign?: SignHead | undefined;
  /** Keys whose replacements of other writers' packs are accepted (default: none). */
  readonly trusted?: ReadonlySet<string> | undefined;
  /** Records to remove. Their references keep no other blob. */
  readonly records: Iterable<Digest>;
  /** Roots (tasks) to remove as well, unless a remaining record refers to them. A signature does not count as such a
   *  record. */
  readonly unlessNeeded?: Iterable<Digest>;
  /** Remaining records whose references to `unlessNeeded` do not count. */
  readonly despite?: Iterable<Digest>;
}

interface Erasure {
  /** Removed records and roots that are in the book, and the blobs that only they reach. Sorted by digest. */
  readonly blobs: readonly ErasedBlob[];
  /** Bytes including all copies. */
  readonly bytes: number;
}

/** The blobs that would be removed, and the reason if `eraseBlobs` would refuse. Removes nothing. */
export async function planErasure(
  root: string,
  options: ErasureOptions,
): Promise<Erasure & { readonly refusal: RollbookError | undefined }> {
  const { clock, trusted } = options;
  const surveying = { clock, trusted, remote: await remoteOf(root), erasure: surveyed(options) };
  return withSurvey(root, surveying, async (survey) => ({
    ...erasureOf(survey),
    refusal: refusalOf(root, survey),
  }));
}

/** Removes the planned blobs, and all unreferenced blobs: leftovers of a crash may hold the same text. */
export async function eraseBlobs(root: string, options: ErasureOptions): Promise<Erasure> {
  const { clock, sign, trusted } = options;
  const surveying = { clock, sign, trusted, remote: await remoteOf(root), erasure: surveyed(options) };
  const erasure = await withSurvey(root, surveying, async (survey, at) => {
    const refusal = refusalOf(root, survey);
    if (refusal !== undefined) throw refusal;
    const planned = erasureOf(survey);
    await new Collection(at, survey, { sign }).run();
    return planned;
  });
  await requireGone(root, { clock, erasure });
  return erasure;
}

function surveyed({ records, unlessNeeded = [], despite = [] }: ErasureOptions): SurveyedErasure {
  return { records: new Set(records), unlessNeeded: new Set(unlessNeeded), despite: new Set(despite) };
}

function erasureOf(survey: Survey): Erasure {
  const kinds = new Map<Digest, string>();
  let total = 0;
  for (const pack of survey.packs)
    for (const { digest, kind, bytes } of survey.blobsOf(pack)) {
      if (!survey.doomed.has(digest)) continue;
      kinds.set(digest, kind);
      total += bytes;
    }
  const blobs = [...kinds].map(([digest, kind]) => ({ digest, kind }));
  return { blobs: blobs.sort((a, b) => (a.digest < b.digest ? -1 : 1)), bytes: total };
}

function refusalOf(root: string, survey: Survey): RollbookError | undefined {
  if (survey.keepsAll)
    return new RollbookError(
      "erase-blocked",
      { root, kinds: survey.unknownKinds },
      `${root} holds blobs of kinds that this version cannot read (${survey.unknownKinds.join(", ")}), which may need anything. Erase with the rollbook that wrote them.`,
    );
  const packs = survey.busyPacks();
  if (packs.length === 0) return undefined;
  return new RollbookError(
    "erase-busy",
    { root, packs },
    `a process that writes to ${root} still holds what is to be erased (pack ${packs[0]}). Stop it (a gateway, a worker, a launch) and run the command again.`,
  );
}

/** Throws if another process has meanwhile put an erased blob again. */
async function requireGone(
  root: string,
  { clock, erasure }: { clock: Clock; erasure: Erasure },
): Promise<void> {
  const book = await openBook(root, { clock, mode: "read" });
  try {
    for (const { digest } of erasure.blobs)
      if (await book.has(digest))
        throw new RollbookError(
          "erase-incomplete",
          { root, digest },
          `${digest} was to be erased and is in ${root} again: another process has put it there. Stop it and run the command again.`,
        );
  } finally {
    await book.close();
  }
}
