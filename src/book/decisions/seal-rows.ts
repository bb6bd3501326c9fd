/** Seals the rows of a decision log into a book, one rollout each, signed and durable, in bounded memory.
 *  In: rows, one at a time. Out: how many were new and how many the book had, and warnings. A
 *  damaged copy is written again. A row that was erased is refused. What a crash leaves is whole rollouts; the same import finishes the rest. */
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
/** A writer remembers what it has put: a new one begins with an empty memory. */
const COMMITS_PER_SESSION = 200;

interface SealedDecisions extends Omit<RoutingMeta, "filters" | "recommended" | "schema"> {
  /** Of the rows, those that were new to the book. */
  readonly sealed: number;
  /** Of the rows, those that the book had. */
  readonly known: number;
  /** Of those, the rows of which the book had a damaged copy: written again. `gc` then removes the damaged copies. */
  readonly repaired: number;
  /** What entered the book and may surprise later. */
  readonly warnings: readonly ImportWarning[];
}

interface SealRowsOptions extends OpenBookOptions {
  /** Called before the first rows are written: if the import breaks off after that, the book holds a part of it. */
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
        // What the book has without a signature gets one.
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
