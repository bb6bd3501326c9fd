/** Brings a bandit's state up to date: counts each decision that no increment has counted, once, by id.
 *  In: a store, its increments, the decisions. Out: the sums over all decisions, and new sealed increments.
 *  Needs no lock: any number of processes may update at once and be killed at any moment. An increment is one record,
 *  written after its columns. Readers resolve overlaps, so no decision is counted twice or lost.
 *  Does not check if a decision is still admitted: `known` holds only admitted increments. */
import { type Digest, RollbookError } from "../../base/index.ts";
import type { SealedBlob, Signer } from "../../contract/index.ts";
import { type BlobStore, makeSealer, type Sealer } from "../../store/index.ts";
import type { DecisionRow } from "../rows/index.ts";
import {
  type BanditDefinition,
  digestState,
  disjointIncrements,
  openIncrements,
  sealIncrement,
  statisticsIn,
  unitsIn,
} from "./bandit-increment.ts";
import { BanditCounter, type BanditStatistics, mergeStatistics } from "./bandit-statistics.ts";

export interface BanditState {
  readonly statistics: BanditStatistics;
  /** The increments whose sum is the state. */
  readonly increments: readonly Digest[];
  readonly digest: Digest;
  /** The trainer batches whose rows the state sums, sorted. */
  readonly batches: readonly Digest[];
  /** The units of all counted decisions. */
  readonly units: ReadonlySet<string>;
  /** Number of decisions that this update counted first. */
  readonly added: number;
}

/** A decision and its unit (task, session). Evaluation of the bandit leaves these units out. */
export interface UnitRow extends DecisionRow {
  readonly unit: string;
}

export interface FreshDecisions {
  readonly batches: readonly Digest[];
  readonly rows: AsyncIterable<UnitRow>;
}

interface BanditUpdate {
  readonly definition: BanditDefinition;
  /** Increments to add up. Increments of another definition are skipped. */
  readonly known: readonly Digest[];
  /** The decisions that are not in `counted`, and the batches that hold them. A counted decision is skipped. */
  fresh(counted: ReadonlySet<string>): Promise<FreshDecisions>;
  /** Signs the increments. */
  readonly signer?: Signer | undefined;
  /** Above this number, increments are merged into a snapshot. */
  readonly mostIncrements?: number;
}

const MOST_INCREMENTS = 32;

export async function updateBandit(
  store: Pick<BlobStore, "get" | "put" | "flush">,
  { definition, known, fresh: find, signer, mostIncrements = MOST_INCREMENTS }: BanditUpdate,
): Promise<BanditState> {
  const sealer = makeSealer(store, signer);
  const opened = await openIncrements(store, known, definition);
  const { kept, ids } = await disjointIncrements(store, opened);
  const parts = new Map<Digest, BanditStatistics>();
  const units = new Set<string>();
  for (const each of kept) {
    parts.set(each.digest, await statisticsIn(store, each));
    for (const unit of await unitsIn(store, each)) units.add(unit);
  }
  const batches = new Set(kept.flatMap(({ record }) => record.batches ?? []));
  const found = await find(ids);
  const fresh = await countFresh(definition, found.rows, ids);
  if (fresh !== undefined) {
    for (const batch of found.batches) batches.add(batch);
    const written = await write(sealer, { definition, ...fresh, batches: found.batches });
    parts.set(written, fresh.statistics);
  }
  for (const unit of fresh?.units ?? []) units.add(unit);
  if (parts.size === 0)
    throw new RollbookError(
      "empty-split",
      { rows: 0 },
      "no decision has a reward yet. Record outcomes first.",
    );
  const increments = [...parts.keys()].sort();
  const statistics = mergeStatistics(increments.map((digest) => parts.get(digest)!));
  const merged = increments.length > mostIncrements;
  const final = merged
    ? [
        await write(sealer, {
          definition,
          statistics,
          ids: [...ids],
          units: [...units],
          merges: increments,
          batches: [...batches],
        }),
      ]
    : increments;
  return {
    ...{ statistics, units, increments: final, digest: digestState(final) },
    batches: [...batches].sort(),
    added: fresh?.ids.length ?? 0,
  };
}

interface Fresh {
  readonly statistics: BanditStatistics;
  readonly ids: readonly string[];
  readonly units: readonly string[];
}

/** The sums over the labelled decisions that are not in `counted`. Adds their ids to `counted`. */
async function countFresh(
  { features }: BanditDefinition,
  rows: AsyncIterable<UnitRow>,
  counted: Set<string>,
): Promise<Fresh | undefined> {
  const counter = new BanditCounter(features);
  const ids: string[] = [];
  const units = new Set<string>();
  for await (const row of rows) {
    const { id, unit, reward } = row;
    if (reward === null || counted.has(id)) continue;
    counter.add({ ...row, reward });
    counted.add(id);
    ids.push(id);
    units.add(unit);
  }
  return ids.length === 0 ? undefined : { statistics: counter.statistics(), ids, units: [...units] };
}

async function write(sealer: Sealer, options: Parameters<typeof sealIncrement>[0]): Promise<Digest> {
  const { increment, blobs } = sealIncrement(options);
  await sealer.add({ envelope: increment, blobs: blobs as readonly SealedBlob[] });
  return increment.digest;
}
