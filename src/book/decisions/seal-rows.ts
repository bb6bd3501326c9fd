/** Seals the rows of a decision log into a book, one rollout each, signed and durable, in bounded memory.
 *  In: rows, one at a time. Out: how many, and warnings. A row that was erased is refused. What a crash leaves is whole rollouts; the same import finishes the rest. */
import { MetaTally, type RoutingMeta, sealDecision } from "../../convert/index.ts";
import type { LoggedRow } from "../../learn/index.ts";
import { makeSealer } from "../../store/index.ts";
import { IdConflicts, type ImportWarning } from "../import/index.ts";
import {
  type BookIndex,
  type OpenBookOptions,
  requireBook,
  requireWritable,
  useBook,
} from "../open/index.ts";

/** Rollouts that share a signature and an fsync. */
const ROWS_PER_COMMIT = 256;
/** A writer remembers what it has put: a new one begins with an empty memory. */
const COMMITS_PER_SESSION = 200;

interface SealedDecisions extends Omit<RoutingMeta, "filters" | "recommended" | "schema"> {
  /** What entered the book and may surprise later. */
  readonly warnings: readonly ImportWarning[];
}

export async function sealDecisions(
  root: string,
  rows: AsyncIterable<LoggedRow>,
  options: OpenBookOptions = {},
): Promise<SealedDecisions> {
  requireBook(root);
  requireWritable(root);
  return useBook(root, { ...options, mode: "read" }, async (book) =>
    sealAll(root, rows, { options, index: await book.index() }),
  );
}

async function sealAll(
  root: string,
  rows: AsyncIterable<LoggedRow>,
  { options, index }: { options: OpenBookOptions; index: BookIndex },
): Promise<SealedDecisions> {
  const tally = new MetaTally();
  const conflicts = new IdConflicts(index);
  const groups = inGroups(rows, ROWS_PER_COMMIT);
  let left = true;
  while (left) {
    await useBook(root, { ...options, mode: "write" }, async ({ store, signer }) => {
      const sealer = makeSealer(store, signer);
      for (let commit = 0; commit < COMMITS_PER_SESSION; commit++) {
        const group = await groups.next();
        if (group.done === true) {
          left = false;
          return;
        }
        const sealed = group.value.map(sealDecision);
        conflicts.see(sealed.map(({ content }) => content));
        await Promise.all(sealed.map((each) => sealer.add(each)));
        for (const row of group.value) tally.add(row);
      }
    });
  }
  const { filters: _, recommended: __, schema: ___, ...counts } = tally.meta({});
  return { ...counts, warnings: conflicts.warnings() };
}

async function* inGroups<T>(items: AsyncIterable<T>, size: number): AsyncGenerator<T[], undefined> {
  let group: T[] = [];
  for await (const item of items) {
    group.push(item);
    if (group.length < size) continue;
    yield group;
    group = [];
  }
  if (group.length > 0) yield group;
}
