/** Erases rollouts from a book: a tombstone first, then the bytes.
 *  In: a book's directory, contents, a reason. Out: a report of the removed records. Removes nothing before the
 *  tombstone is durable. After a kill at any later moment the same call finishes the work. */
import { type Clock, type Digest, type Id, plural, RollbookError } from "../../base/index.ts";
import {
  type ErasedBlob,
  type Signer,
  seal,
  Task,
  Tombstone,
  type UnsignedHead,
} from "../../contract/index.ts";
import { type Book, eraseBlobs, makeSealer, openBook, planErasure, scrubCatalog } from "../../store/index.ts";
import { type ErasableRecords, findErasable, type Subject } from "./erasable-records.ts";
import { findRemains, type Remains, removeClosedLists } from "./remains.ts";

export interface EraseOptions {
  readonly clock: Clock;
  readonly subjects: readonly Subject[];
  readonly reason: string;
  readonly by: Id;
  readonly signer?: Signer | undefined;
  /** Keys whose replacements of other writers' packs are accepted. */
  readonly trusted?: ReadonlySet<string> | undefined;
  /** Also erase the shards of batches that hold rows of the rollouts. */
  readonly withBatches?: boolean;
  /** Only report what would be erased. */
  readonly dryRun?: boolean;
  /** Removes copies of text that no digest names. Called once the tombstone is durable and before bytes of the book are
   *  removed: a kill in between leaves rollouts that the next call finds and erases. Called again at the end, because
   *  of concurrent writers. */
  readonly removeCopies?: (() => void) | undefined;
}

export interface EraseReport extends Remains {
  readonly dryRun: boolean;
  /** In a dry run: reasons why the erasure would be refused. */
  readonly refusals: readonly RollbookError[];
  readonly rollouts: readonly string[];
  /** Undefined in a dry run. An earlier tombstone, if it already names everything. */
  readonly tombstone?: Digest;
  readonly records: readonly ErasedBlob[];
  readonly blobs: readonly ErasedBlob[];
  /** Batches whose shards are erased. */
  readonly batches: readonly Digest[];
  /** Batches that considered the rollouts and hold no rows of them. Their rows stay, but they can no longer be
   *  assembled again. */
  readonly batchesKept: readonly Digest[];
  /** Tasks of the rollouts that stay, because another record of the book names them. */
  readonly tasksKept: readonly Digest[];
  readonly bytes: number;
}

export async function eraseRollouts(root: string, options: EraseOptions): Promise<EraseReport> {
  const { clock, trusted, subjects, withBatches = false, dryRun = false } = options;
  const reading = { clock, mode: "read" } as const;
  const found = await useStore(root, reading, (book) => findErasable(book, subjects));
  const gone = [...found.records, ...found.shards];
  const tasks = { unlessNeeded: found.tasks, despite: found.assignments };
  const planned = await planErasure(root, { clock, trusted, records: digestsOf(gone), ...tasks });
  const refusals = [
    ...(found.batches.length > 0 && !withBatches ? [inBatches(found)] : []),
    ...(planned.refusal === undefined ? [] : [planned.refusal]),
  ];
  if (!dryRun && refusals[0] !== undefined) throw refusals[0];
  const report = {
    ...{ dryRun, refusals },
    rollouts: found.subjects.map(({ rollout }) => rollout),
    ...split(planned.blobs, new Set(digestsOf(gone))),
    batches: found.batches,
    batchesKept: found.batchesKept,
    tasksKept: await useStore(root, reading, (book) => tasksIn(book, found.tasks, planned.blobs)),
    bytes: planned.bytes,
  };
  if (dryRun) return { ...report, ...findRemains(root, report.rollouts) };
  const standing = coveredBy(found, [...gone, ...planned.blobs.filter(({ kind }) => kind === Task.kind)]);
  const tombstone = standing ?? (await writeTombstone(root, { ...options, found, report }));
  const records = found.tombstones.get(tombstone)?.records ?? gone;
  const { signer, removeCopies } = options;
  removeCopies?.();
  const sign = signer === undefined ? undefined : (head: UnsignedHead) => signer.signHead(head);
  const all = [...digestsOf(records), ...digestsOf(gone)];
  await eraseBlobs(root, { clock, sign, trusted, records: all, ...tasks });
  await finishErasure(root);
  removeCopies?.();
  return { ...report, tombstone, ...findRemains(root, report.rollouts) };
}

/** Finishes an erasure after the bytes are removed. A call that finds nothing to erase does this too, because an
 *  earlier call may have been killed here. */
export async function finishErasure(root: string): Promise<void> {
  await scrubCatalog(root);
  removeClosedLists(root);
}

async function useStore<T>(
  root: string,
  options: Parameters<typeof openBook>[1],
  work: (book: Book) => Promise<T>,
): Promise<T> {
  const book = await openBook(root, options);
  try {
    return await work(book);
  } finally {
    await book.close();
  }
}

/** A tombstone that names all blobs and subjects: of an interrupted or a complete erasure. */
function coveredBy(
  { tombstones, subjects }: ErasableRecords,
  gone: readonly ErasedBlob[],
): Digest | undefined {
  for (const [digest, { records, blobs }] of tombstones) {
    const named = new Set(digestsOf([...records, ...blobs.filter(({ kind }) => kind === Task.kind)]));
    if (gone.every((each) => named.has(each.digest)) && subjects.every(({ content }) => named.has(content)))
      return digest;
  }
  return undefined;
}

/** Tasks that are in the book and are not erased. */
async function tasksIn(
  book: Book,
  tasks: readonly Digest[],
  going: readonly ErasedBlob[],
): Promise<Digest[]> {
  const gone = new Set(digestsOf(going));
  const kept: Digest[] = [];
  for (const task of tasks) if (!gone.has(task) && (await book.has(task))) kept.push(task);
  return kept;
}

async function writeTombstone(
  root: string,
  options: EraseOptions & {
    readonly found: ErasableRecords;
    readonly report: Omit<EraseReport, keyof Remains>;
  },
): Promise<Digest> {
  const { clock, reason, by, signer, found, report } = options;
  // Records that are already gone stay named: references to them lead to something erased, not lost.
  const { records, blobs } = withEarlier(report, found);
  const tombstone = seal(Tombstone, {
    subjects: [...found.subjects],
    records,
    blobs,
    reason,
    by,
    atMs: clock.nowMs(),
  });
  const sign = signer === undefined ? undefined : () => (head: UnsignedHead) => signer.signHead(head);
  await useStore(root, { clock, sign }, (book) =>
    makeSealer(book, signer).add({ envelope: tombstone, blobs: [tombstone] }),
  );
  return tombstone.digest;
}

/** If more records of a subject came after its first erasure, its content is in an earlier tombstone. */
function withEarlier(
  { records, blobs }: Pick<EraseReport, "records" | "blobs">,
  { tombstones, subjects }: ErasableRecords,
): { records: ErasedBlob[]; blobs: ErasedBlob[] } {
  const contents = new Set(subjects.map(({ content }) => content));
  const named = new Map(records.map((each) => [each.digest, each]));
  for (const earlier of tombstones.values())
    for (const each of earlier.records) if (contents.has(each.digest)) named.set(each.digest, each);
  return { records: [...named.values()].sort(byDigest), blobs: [...blobs] };
}

function split(
  all: readonly ErasedBlob[],
  records: ReadonlySet<Digest>,
): { records: ErasedBlob[]; blobs: ErasedBlob[] } {
  return {
    records: all.filter(({ digest }) => records.has(digest)),
    blobs: all.filter(({ digest }) => !records.has(digest)),
  };
}

function digestsOf(blobs: readonly ErasedBlob[]): Digest[] {
  return blobs.map(({ digest }) => digest);
}

function byDigest(a: ErasedBlob, b: ErasedBlob): number {
  return a.digest < b.digest ? -1 : 1;
}

function inBatches({ batches, batchesKept, subjects }: ErasableRecords): RollbookError {
  const names = batches.slice(0, 5).map((digest) => digest.slice(7, 19));
  const more = batches.length > 5 ? ` and ${batches.length - 5} more` : "";
  const others =
    batchesKept.length === 0
      ? ""
      : ` ${plural(batchesKept.length, "other batch")} excluded the rollouts: the rows there stay readable, but \`batch verify\` can then no longer assemble ${batchesKept.length === 1 ? "it" : "them"} again.`;
  return new RollbookError(
    "in-batches",
    { rollouts: subjects.map(({ rollout }) => rollout), batches },
    `batches hold rows of what is to be erased: ${names.join(", ")}${more}. Add --with-batches to erase the shards with these rows too; these batches can then no longer be read or assembled again.${others}`,
  );
}
