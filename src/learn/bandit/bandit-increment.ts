/** Bandit state as sealed records: statistics to increments and back, and the choice of increments that can be added
 *  up. In: statistics with the ids they count, or a store. Out: records and blobs; increments that share no decision.
 *  The choice depends only on the set of increments, so every reader sees the same state. An increment that overlaps a
 *  larger one is left out whole.
 *  The next update counts the decisions again that only the omitted increment had counted. */
import {
  bytesOf,
  type Column,
  canonicalize,
  columnFrom,
  columnTag,
  compareUtf8,
  type Digest,
  decodeUtf8,
  digestColumn,
  digestJson,
  dtypeOf,
  type Json,
  RollbookError,
} from "../../base/index.ts";
import {
  BanditIncrement,
  type ColumnRef,
  openRecord,
  type Sealed,
  type SealedBlob,
  seal,
} from "../../contract/index.ts";
import type { FeatureSpec } from "../../policy/index.ts";
import type { BlobStore } from "../../store/index.ts";
import type { ArmSums, BanditStatistics } from "./bandit-statistics.ts";

/** The decisions that a state sums, and their features. Bandits with the same definition share their state. */
export interface BanditDefinition {
  readonly filters: Readonly<Record<string, string>>;
  /** Absent: only counts and rewards (UCB1, Bernoulli Thompson). */
  readonly features?: FeatureSpec;
}

interface OpenIncrement {
  readonly digest: Digest;
  readonly record: BanditIncrement;
}

function isOf(record: BanditIncrement, { filters, features }: BanditDefinition): boolean {
  return (
    canonicalize(record.filters) === canonicalize(filters) &&
    canonicalize((record.features ?? null) as Json) === canonicalize(features ?? null)
  );
}

/** Pure: the same sums of the same decisions give the same bytes. */
export function sealIncrement(options: {
  definition: BanditDefinition;
  statistics: BanditStatistics;
  ids: readonly string[];
  /** The units of the decisions; a unit may occur more than once. */
  units: readonly string[];
  merges?: readonly Digest[];
  /** The batches that hold the decisions as rows. */
  batches?: readonly Digest[];
}): { increment: Sealed<BanditIncrement>; blobs: SealedBlob[] } {
  const { definition, statistics, ids, units, merges = [], batches = [] } = options;
  const blobs: SealedBlob[] = [];
  const column = <T extends Column>(values: T): ColumnRef<never> => {
    const dtype = dtypeOf(values);
    const digest = digestColumn(values);
    blobs.push({ kind: columnTag(dtype), digest, bytes: bytesOf(values) });
    return { digest, dtype, length: values.length } as ColumnRef<never>;
  };
  const arms = [...statistics.arms.values()];
  const linear = definition.features !== undefined;
  const increment = seal(BanditIncrement, {
    filters: { ...definition.filters },
    ...(definition.features === undefined ? {} : { features: { ...definition.features } }),
    arms: [...statistics.arms.keys()],
    decisions: {
      count: ids.length,
      ids: column(lineColumn(ids)),
      units: column(lineColumn([...new Set(units)])),
    },
    rewards: { low: statistics.low, high: statistics.high },
    columns: {
      counts: column(Float64Array.from(arms, ({ count }) => count)),
      sums: column(Float64Array.from(arms, ({ sum }) => sum)),
      ...(linear
        ? {
            gram: column(joined(arms.map(({ gram }) => gram))),
            response: column(joined(arms.map(({ response }) => response))),
          }
        : {}),
    },
    merges: [...merges].sort(),
    ...(batches.length === 0 ? {} : { batches: [...batches].sort() }),
  });
  return { increment, blobs: [...blobs, increment] };
}

/** The increments of the definition among `digests`. */
export async function openIncrements(
  store: Pick<BlobStore, "get">,
  digests: readonly Digest[],
  definition: BanditDefinition,
): Promise<OpenIncrement[]> {
  const found: OpenIncrement[] = [];
  for (const digest of digests) {
    const { bytes } = await need(store, digest, digest);
    const record = openRecord(BanditIncrement, bytes, digest);
    if (isOf(record, definition)) found.push({ digest, record });
  }
  return found;
}

/** Increments without overlap, by digest, and the ids of all their decisions. Larger increments win, so a snapshot
 *  replaces its parts. */
export async function disjointIncrements(
  store: Pick<BlobStore, "get">,
  increments: readonly OpenIncrement[],
): Promise<{ kept: OpenIncrement[]; ids: Set<string> }> {
  const ordered = [...increments].sort(
    (a, b) => b.record.decisions.count - a.record.decisions.count || (a.digest < b.digest ? -1 : 1),
  );
  const ids = new Set<string>();
  const covered = new Set<Digest>();
  const kept: OpenIncrement[] = [];
  for (const each of ordered) {
    if (covered.has(each.digest)) continue;
    const own = await idsOf(store, each);
    if (own.some((id) => ids.has(id))) continue;
    for (const id of own) ids.add(id);
    for (const part of each.record.merges) covered.add(part);
    kept.push(each);
  }
  return { kept: kept.sort((a, b) => (a.digest < b.digest ? -1 : 1)), ids };
}

export async function statisticsIn(
  store: Pick<BlobStore, "get">,
  { digest, record }: OpenIncrement,
): Promise<BanditStatistics> {
  const read = async (column: ColumnRef<"f64"> | undefined) =>
    column === undefined
      ? new Float64Array(0)
      : columnFrom("f64", (await need(store, column.digest, digest)).bytes);
  const { counts, sums, gram, response } = record.columns;
  const values = [await read(counts), await read(sums), await read(gram), await read(response)] as const;
  const size = values[3].length / record.arms.length;
  const triangle = values[2].length / record.arms.length;
  const arms = record.arms.map((id, a): [string, ArmSums] => [
    id,
    {
      count: values[0][a]!,
      sum: values[1][a]!,
      gram: values[2].subarray(a * triangle, (a + 1) * triangle),
      response: values[3].subarray(a * size, (a + 1) * size),
    },
  ]);
  return { size, arms: new Map(arms), decisions: record.decisions.count, ...record.rewards };
}

/** Names a state by the digests of its increments. */
export function digestState(increments: readonly Digest[]): Digest {
  return digestJson("rollbook.bandit-state.v1", [...increments].sort());
}

/** The units of the decisions that an increment counts. */
export async function unitsIn(
  store: Pick<BlobStore, "get">,
  { digest, record }: OpenIncrement,
): Promise<string[]> {
  return decodeUtf8((await need(store, record.decisions.units.digest, digest)).bytes, digest).split("\n");
}

async function idsOf(store: Pick<BlobStore, "get">, { digest, record }: OpenIncrement): Promise<string[]> {
  const ids = decodeUtf8((await need(store, record.decisions.ids.digest, digest)).bytes, digest).split("\n");
  if (ids.length === record.decisions.count) return ids;
  throw new RollbookError(
    "bad-record",
    { digest, expected: record.decisions.count, actual: ids.length },
    `increment ${digest} claims ${record.decisions.count} decisions and lists ${ids.length}. Restore the book from a copy.`,
  );
}

function lineColumn(names: readonly string[]): Uint8Array {
  const broken = names.find((name) => name.includes("\n") || name === "");
  if (broken !== undefined)
    throw new RollbookError(
      "bad-training-data",
      { name: broken },
      `${JSON.stringify(broken)}, the id of a decision or its unit, is empty or holds a line feed. Name it otherwise.`,
    );
  return new Uint8Array(Buffer.from([...names].sort(compareUtf8).join("\n")));
}

function joined(parts: readonly Float64Array[]): Float64Array {
  const all = new Float64Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}

async function need(store: Pick<BlobStore, "get">, digest: Digest, of: Digest) {
  const blob = await store.get(digest);
  if (blob !== undefined) return blob;
  throw new RollbookError(
    "missing-blob",
    { digest, of },
    `${digest}, part of the bandit increment ${of}, is not in the book. Restore the book from a copy.`,
  );
}
