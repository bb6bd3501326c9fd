/** The state of a bandit in the book, brought up to date with the decisions that came since.
 *  In: which decisions, a split, a learner. Out: the state; what is new is sealed as one batch and one increment of its sums.
 *  An increment counts as long as every row of its batches is still admitted with the same rewards: after a later verdict or
 *  a later label its decisions are counted anew. */
import { canonicalize } from "../../base/canonical-json.ts";
import { type Digest, isRollbookError } from "../../base/index.ts";
import { BanditIncrement } from "../../contract/index.ts";
import type { AdmittedStream } from "../../keep/admit/select.ts";
import { readBatch } from "../../keep/batch/index.ts";
import {
  type BanditState,
  type FreshDecisions,
  type LoggedRow,
  type SplitRule,
  type UnitRow,
  unitOf,
  updateBandit,
} from "../../learn/index.ts";
import type { FeatureSpec } from "../../policy/index.ts";
import { readRecord } from "../../store/read-record.ts";
import type { AdmittedRollouts } from "../admitted-rollouts.ts";
import { type DecisionRequest, rowsOfBatch } from "../decisions/decision-rows.ts";
import type { OpenBook } from "../open-book.ts";
import { type BanditLearner, deriveSpec, isLinear, specOf } from "./learners.ts";
import { cutTrainingBatch, requireTraining, splitAdmitted } from "./training-batch.ts";

export interface BanditOfBook extends BanditState {
  readonly spec: FeatureSpec | undefined;
  /** Decisions of the other splits. */
  readonly heldBack: number;
}

export interface BanditRequest {
  readonly request: DecisionRequest;
  readonly admitted: AdmittedRollouts;
  readonly rule: SplitRule;
  readonly learner: BanditLearner;
  readonly parent?: string | undefined;
}

export async function banditOfBook(book: OpenBook, options: BanditRequest): Promise<BanditOfBook> {
  const { request, admitted, rule, learner } = options;
  const split = splitAdmitted(admitted, rule);
  requireTraining(admitted, split, rule);
  const filters = filtersOf(request, admitted.family, rule);
  const standing = await standingIncrements(book, { filters, rewards: rewardsOf(split.train) });
  const cut = memo(async () => {
    const { counted } = standing;
    if (split.train.every(({ content }) => counted.has(content))) return undefined;
    return (await cutTrainingBatch(book, { ...options, counted })).digest;
  });
  const spec = isLinear(learner)
    ? (specOf(learner) ??
      standing.spec ??
      (await deriveSpec(rowsIn(book, [...standing.batches, await cut()]))))
    : undefined;
  const state = await updateBandit(book.store, {
    definition: { filters, ...(spec === undefined ? {} : { features: spec }) },
    known: standing.increments,
    // Increments over other features do not count here, so their decisions are fresh for this definition.
    fresh: async (ids) => freshFrom(book, { ids, batches: [...standing.batches, await cut()], rule }),
  });
  return { ...state, spec, heldBack: split.heldBack };
}

type Rewards = ReadonlyMap<string, readonly number[] | undefined>;

interface Standing {
  /** Increments whose every row is still what it was. */
  readonly increments: readonly Digest[];
  /** Their batches, and the contents in them. */
  readonly batches: ReadonlySet<Digest>;
  readonly counted: ReadonlySet<Digest>;
  /** The features of the largest: a state keeps its features until told otherwise. */
  readonly spec: FeatureSpec | undefined;
}

async function standingIncrements(
  book: OpenBook,
  { filters, rewards }: { filters: Readonly<Record<string, string>>; rewards: Rewards },
): Promise<Standing> {
  const increments: Digest[] = [];
  const batches = new Set<Digest>();
  const counted = new Set<Digest>();
  let [most, spec]: [number, FeatureSpec | undefined] = [0, undefined];
  const checked = new Map<Digest, Promise<readonly Digest[] | undefined>>();
  for (const { digest } of (await book.index()).ofKind(BanditIncrement.kind)) {
    const record = await readRecord(book.store, BanditIncrement, digest);
    if (record.batches === undefined || canonicalize(record.filters) !== canonicalize(filters)) continue;
    const contents: Digest[] = [];
    let stands = true;
    for (const batch of record.batches) {
      if (!checked.has(batch)) checked.set(batch, standingContents(book, batch, rewards));
      const own = await checked.get(batch);
      if (own === undefined) stands = false;
      else contents.push(...own);
    }
    if (!stands) continue;
    increments.push(digest);
    for (const batch of record.batches) batches.add(batch);
    for (const content of contents) counted.add(content);
    if (record.features === undefined || record.decisions.count <= most) continue;
    [most, spec] = [record.decisions.count, record.features as unknown as FeatureSpec];
  }
  return { increments, batches, counted, spec };
}

/** The contents of a batch, if all its rows are admitted now with the rewards they had; else undefined. */
async function standingContents(
  book: OpenBook,
  digest: Digest,
  rewards: Rewards,
): Promise<readonly Digest[] | undefined> {
  const contents: Digest[] = [];
  try {
    const batch = await readBatch((each) => book.store.get(each), digest);
    if (batch.level !== "step") return undefined;
    for await (const { content, stream, steps } of batch.rows()) {
      const now = rewards.get(`${content} ${stream}`);
      if (now === undefined || steps.some(({ reward }, i) => reward !== now[i])) return undefined;
      contents.push(content);
    }
  } catch (error) {
    // Rows that were erased teach nothing any more; `verify` says whether they were erased or lost.
    if (isRollbookError(error, "missing-blob")) return undefined;
    throw error;
  }
  return contents;
}

async function freshFrom(
  book: OpenBook,
  {
    ids,
    batches,
    rule,
  }: { ids: ReadonlySet<string>; batches: readonly (Digest | undefined)[]; rule: SplitRule },
): Promise<FreshDecisions> {
  const rows: UnitRow[] = [];
  const used = new Set<Digest>();
  for (const batch of batches) {
    if (batch === undefined) continue;
    for await (const row of rowsIn(book, [batch])) {
      if (ids.has(row.id)) continue;
      rows.push({ ...row, unit: unitOf(row, rule.unit) });
      used.add(batch);
    }
  }
  return { batches: [...used], rows: each(rows) };
}

async function* rowsIn(book: OpenBook, batches: readonly (Digest | undefined)[]): AsyncGenerator<LoggedRow> {
  for (const batch of batches)
    if (batch !== undefined) yield* rowsOfBatch((digest) => book.store.get(digest), batch);
}

async function* each<T>(items: readonly T[]): AsyncGenerator<T> {
  yield* items;
}

function rewardsOf(rows: readonly AdmittedStream[]): Rewards {
  return new Map(rows.map(({ content, stream, rewards }) => [`${content} ${stream}`, rewards]));
}

/** What a state is the sum of, as its increments record it. */
function filtersOf(request: DecisionRequest, family: string, rule: SplitRule): Record<string, string> {
  const { session, dataSource, sinceMs, untilMs, feedback } = request;
  const stated = { session, dataSource, feedback, since: timeOf(sinceMs), until: timeOf(untilMs) };
  return {
    family,
    ...(Object.fromEntries(Object.entries(stated).filter(([, value]) => value !== undefined)) as Record<
      string,
      string
    >),
    split: `train of ${rule.shares.join("/")} by ${rule.unit}, ${rule.salt}`,
  };
}

function timeOf(ms: number | undefined): string | undefined {
  return ms === undefined ? undefined : new Date(ms).toISOString();
}

function memo<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined;
  return () => {
    made ??= make();
    return made;
  };
}
