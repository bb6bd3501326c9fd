/** Checks of a whole store: tasks in two splits, and chains that differ.
 *  In: a store. Out: the findings, or an error that names them. Holds a few hundred bytes per task. */
import { type Digest, DigestTable, digestJson, RollbookError } from "../../../base/index.ts";
import { Dictionary, type SegmentReader } from "../tables/index.ts";
import type { ReplayStore } from "./replay-store.ts";

interface SplitLeak {
  readonly task: string;
  readonly environment: string;
  readonly splits: readonly [string, string];
  /** Segment, and row of its sources, where the second split was found. */
  readonly segment: number;
  readonly row: number;
}

/** A field in which chains of one store differ, with the first two values. */
interface Difference {
  readonly field: string;
  readonly values: readonly [string, string];
  /** Rows of chains. */
  readonly chains: readonly [number, number];
}

const NO_SPLIT = "(none)";

/** Finds tasks that are in two splits, over any number of segments. */
export class SplitWatch {
  readonly #splits = new Dictionary();
  readonly #tasks = new DigestTable();
  /** First split of each task, by the number of the task. */
  readonly #first: number[] = [];

  async *scan(reader: SegmentReader, segment: number): AsyncGenerator<SplitLeak> {
    const texts = await reader.texts();
    const keys = new Map<string, Digest>();
    const names = ["task", "task_digest", "environment", "split"] as const;
    for await (const { from, columns: block } of reader.blocks("sources", names)) {
      for (let i = 0; i < block.task.length; i++) {
        const ids = [block.environment[i]!, block.task[i]!, block.task_digest[i]!];
        const id = ids.join();
        const key =
          keys.get(id) ??
          digestJson(
            "rollbook.replay.task",
            ids.map((each) => texts[each] ?? null),
          );
        keys.set(id, key);
        const split = this.#splits.id(texts[block.split[i]!] ?? NO_SPLIT);
        const number = this.#tasks.add(key);
        this.#first[number] ??= split;
        const known = this.#first[number];
        if (known === split) continue;
        const both = [this.#splits.texts()[known]!, this.#splits.texts()[split]!] as const;
        const [environment, task] = [texts[ids[0]!] ?? "", texts[ids[1]!] ?? ""];
        yield { task, environment, splits: both, segment, row: from + i };
      }
    }
  }
}

export async function findSplitLeaks(store: ReplayStore): Promise<SplitLeak[]> {
  const watch = new SplitWatch();
  const leaks: SplitLeak[] = [];
  for (const { reader, index } of store.segments)
    for await (const leak of watch.scan(reader, index)) leaks.push(leak);
  return leaks;
}

export async function requireDisjointSplits(store: ReplayStore): Promise<void> {
  const leaks = await findSplitLeaks(store);
  const [first] = leaks;
  if (first === undefined) return;
  throw new RollbookError(
    "split-leak",
    { leaks: leaks.length, ...first },
    `the task ${first.task} of ${first.environment} is in several splits: ${first.splits.join(" and ")}${leaks.length > 1 ? `, and ${leaks.length - 1} more like it` : ""}. Give every task one split.`,
  );
}

const CHAIN_FIELDS = ["family", "level", "logprob_kind", "tokenizer"] as const;
const LINEAGE_FIELDS = [
  ...(["policy", "environment", "environment_digest", "reward", "sampling"] as const),
  ...(["candidate_mixture", "target", "oracle"] as const),
] as const;
type StoreField = (typeof CHAIN_FIELDS)[number] | (typeof LINEAGE_FIELDS)[number];

/** Fields that one learner should not mix unknowingly. Policies may differ: replay is meant for learning from many. */
const HOMOGENEOUS_FIELDS: readonly StoreField[] = [
  ...(["family", "level", "logprob_kind", "environment", "reward"] as const),
  ...(["candidate_mixture", "target", "oracle"] as const),
];

/** For each field the first pair of chains that differ in it. */
export async function findDifferences(
  store: ReplayStore,
  fields: readonly StoreField[] = HOMOGENEOUS_FIELDS,
): Promise<Difference[]> {
  const found = new Map<string, Difference>();
  const firsts = new Map<string, { value: string; chain: number }>();
  const look = (field: string, value: string, chain: number) => {
    const first = firsts.get(field);
    if (first === undefined) firsts.set(field, { value, chain });
    else if (first.value !== value && !found.has(field))
      found.set(field, { field, values: [first.value, value], chains: [first.chain, chain] });
  };
  for (const [table, names] of [
    ["chains", CHAIN_FIELDS.filter((field) => fields.includes(field))],
    ["lineage", LINEAGE_FIELDS.filter((field) => fields.includes(field))],
  ] as const) {
    for await (const { from, columns, texts } of store.blocks(table, names as never[])) {
      for (const field of names) {
        const ids = (columns as Record<string, Int32Array>)[field]!;
        // Ids are rows of one dictionary, so only a change of id can be a change of value.
        for (let i = 0, last = -2; i < ids.length; i++) {
          if (ids[i] === last) continue;
          last = ids[i]!;
          look(field, texts[last] ?? "(none)", from + i);
        }
      }
    }
  }
  return [...found.values()];
}

/** Refuses a store whose chains differ, and names the field. */
export async function requireHomogeneous(
  store: ReplayStore,
  fields: readonly StoreField[] = HOMOGENEOUS_FIELDS,
): Promise<void> {
  const [first] = await findDifferences(store, fields);
  if (first === undefined) return;
  throw new RollbookError(
    "mixed-store",
    { ...first },
    `chains ${first.chains.join(" and ")} differ in ${first.field}: ${first.values.join(" and ")}. Write them into stores of their own, or leave ${first.field} out of the check.`,
  );
}
