/** Seals the rows of a decision log into a book, one rollout each, signed and durable, in bounded memory.
 *  In: rows, one at a time. Out: how many. What a crash leaves is whole rollouts; the same import finishes the rest. */
import { sealDecision } from "../../convert/decision-rollouts.ts";
import { MetaTally, type RoutingMeta } from "../../convert/routing-jsonl.ts";
import type { LoggedRow } from "../../learn/index.ts";
import { makeSealer } from "../../store/sealer.ts";
import { type OpenBookOptions, useBook } from "../open-book.ts";

/** Rollouts that share a signature and an fsync. */
const ROWS_PER_COMMIT = 256;
/** A writer remembers what it has put: a new one begins with an empty memory. */
const COMMITS_PER_SESSION = 200;

export async function sealDecisions(
  root: string,
  rows: AsyncIterable<LoggedRow>,
  options: OpenBookOptions = {},
): Promise<Omit<RoutingMeta, "filters" | "recommended" | "schema">> {
  const tally = new MetaTally();
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
        await Promise.all(group.value.map((row) => sealer.add(sealDecision(row))));
        for (const row of group.value) tally.add(row);
      }
    });
  }
  const { filters: _, recommended: __, schema: ___, ...counts } = tally.meta({});
  return counts;
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
