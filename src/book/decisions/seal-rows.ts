/** Seals the rows of a decision log into a book, one rollout each, signed and durable, in bounded memory.
 *  In: rows, one at a time. Out: counts of new and known rows, and warnings. A damaged copy is written again. An erased
 *  row is refused. A crash leaves only complete rollouts; repeating the import adds the others. */
import type { SealedRollout } from "../../contract/index.ts";
import { MetaTally, type RoutingMeta, sealDecision } from "../../convert/index.ts";
import type { LoggedRow } from "../../learn/index.ts";
import { makeSealer } from "../../store/index.ts";
import { IdConflicts, type ImportWarning, isWhole } from "../import/index.ts";
import {
  type BookIndex,
  type OpenBookOptions,
  requireBook,
  requireWritable,
  useBook,
} from "../open/index.ts";
import { CostWatch } from "./cost-watch.ts";

/** Rollouts that share a signature and an fsync. */
const ROWS_PER_COMMIT = 256;
/** A writer remembers every digest it has put. A new writer starts with empty memory. */
const COMMITS_PER_SESSION = 200;

interface SealedDecisions extends Omit<RoutingMeta, "filters" | "recommended" | "schema"> {
  /** Rows that were new to the book. */
  readonly sealed: number;
  /** Rows that the book already had. */
  readonly known: number;
  /** Known rows with a damaged copy in the book: written again. `gc` then removes the damaged copies. */
  readonly repaired: number;
  /** Warnings about imported rows that may cause a surprise later. */
  readonly warnings: readonly ImportWarning[];
}

interface SealRowsOptions extends OpenBookOptions {
  /** Called before the first rows are written: an import that fails after this call leaves a part of its rows in the
   *  book. */
  readonly onWrite?: (() => void) | undefined;
}

export async function sealDecisions(
  root: string,
  rows: AsyncIterable<LoggedRow>,
  { onWrite, ...options }: SealRowsOptions = {},
): Promise<SealedDecisions> {
  requireBook(root);
  requireWritable(root);
  return useBook(root, { ...options, mode: "read" }, async (book) =>
    sealAll(root, rows, { options, onWrite, index: await book.index() }),
  );
}

async function sealAll(
  root: string,
  rows: AsyncIterable<LoggedRow>,
  {
    options,
    onWrite,
    index,
  }: { options: OpenBookOptions; index: BookIndex } & Pick<SealRowsOptions, "onWrite">,
): Promise<SealedDecisions> {
  const tally = new MetaTally();
  const conflicts = new IdConflicts(index);
  const costs = new CostWatch();
  const groups = inGroups(rows, ROWS_PER_COMMIT);
  let known = 0;
  let repaired = 0;
  let left = true;
  let isWritten = false;
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
        const lacking = sealed.filter((each) => !isThere(index, each));
        known += sealed.length - lacking.length;
        const damaged: SealedRollout[] = [];
        for (const each of sealed)
          if (isThere(index, each) && !(await isWhole(store, each.blobs))) damaged.push(each);
        repaired += damaged.length;
        // Rows that the book holds without a signature are signed now.
        const unsigned = signer === undefined ? lacking : sealed.filter((each) => !isSigned(index, each));
        if (!isWritten) onWrite?.();
        isWritten = true;
        await Promise.all(
          [...new Set([...lacking, ...damaged, ...unsigned])].map((each) => sealer.add(each)),
        );
        for (const row of group.value) {
          tally.add(row);
          costs.see(row);
        }
      }
    });
  }
  const { filters: _, recommended: __, schema: ___, ...counts } = tally.meta({});
  const warnings = [...conflicts.warnings(), ...costs.warnings()];
  return { ...counts, sealed: counts.rows - known, known, repaired, warnings };
}

function isThere(index: BookIndex, { content, envelope }: SealedRollout): boolean {
  return index.record(content.digest) !== undefined && index.record(envelope.digest) !== undefined;
}

function isSigned(index: BookIndex, { envelope }: SealedRollout): boolean {
  return index.attestationsOf(envelope.digest).length > 0;
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
