/** Updates the state of a bandit in the book with the decisions that came since.
 *  In: filters of decisions, a split, a learner. Out: the state; new decisions are sealed as one batch and one
 *  increment of its sums. Skips increments with decisions that are no longer admitted or have other rewards now. Their
 *  remaining decisions are cut into a new batch. */
import { canonicalize, type Digest } from "../../base/index.ts";
import { type AdmittedStream, streamKey } from "../../keep/admit/index.ts";
import {
  type BanditState,
  type FreshDecisions,
  type LoggedRow,
  returnsToGo,
  type SplitRule,
  type UnitRow,
  unitOf,
  updateBandit,
} from "../../learn/index.ts";
import type { FeatureSpec } from "../../policy/index.ts";
import { type DecisionRequest, rowsOfBatch } from "../decisions/index.ts";
import type { OpenBook } from "../open/index.ts";
import type { AdmittedRollouts } from "../rollouts/index.ts";
import { discountOf } from "./discount.ts";
import { type BanditLearner, deriveSpec, isLinear, specOf } from "./learners.ts";
import { type StandingIncrement, standingIncrements } from "./standing-increments.ts";
import { cutTrainingBatch, readTraining, requireTraining, splitAdmitted } from "./training-batch.ts";

interface BanditOfBook extends BanditState {
  readonly spec: FeatureSpec | undefined;
  /** Decisions of the other splits. */
  readonly heldBack: number;
  /** Discount per decision of a later reward; undefined if every rollout has one decision. */
  readonly returnDiscount: number | undefined;
}

interface BanditRequest {
  readonly request: DecisionRequest & { readonly discount?: number | undefined };
  readonly admitted: AdmittedRollouts;
  readonly rule: SplitRule;
  readonly learner: BanditLearner;
  readonly parent?: string | undefined;
  /** Called before the state takes in new decisions. May refuse. */
  readonly beforeNew: () => Promise<void>;
}

export async function banditOfBook(book: OpenBook, options: BanditRequest): Promise<BanditOfBook> {
  const { request, admitted, rule, learner } = options;
  const split = splitAdmitted(admitted, rule);
  requireTraining(admitted, split, { rule, request });
  const returnDiscount = split.train.some(({ samples }) => samples > 1)
    ? discountOf({ learner, discount: request.discount })
    : undefined;
  const filters = { ...filtersOf(request, admitted.family, rule), ...returnsIn(returnDiscount) };
  const standing = await standingIncrements(book, { filters, rows: split.train });
  const known = isLinear(learner) ? (specOf(learner) ?? largestSpec(standing)) : undefined;
  const own = standing.filter(({ features }) => sameSpec(features, known));
  const taken = new Set(own.flatMap((each) => [...each.batches.values()].flat()));
  if (split.train.some(({ content, stream }) => !taken.has(streamKey(content, stream))))
    await options.beforeNew();
  const batches = await disjointBatches(book, options, { own, standing, train: split.train });
  const spec = isLinear(learner) ? (known ?? (await deriveSpec(rowsIn(book, batches)))) : undefined;
  const state = await updateBandit(book.store, {
    definition: { filters, ...(spec === undefined ? {} : { features: spec }) },
    known: own.map(({ digest }) => digest),
    fresh: (ids) => freshFrom(book, { ids, batches, rule, discount: returnDiscount ?? 0 }),
    signer: book.signer,
  });
  return { ...state, spec, heldBack: split.heldBack, returnDiscount };
}

/** Batches that hold every row of the train split exactly once. The order is: batches of this state, other batches that
 *  share no row with them, and a new batch of the remaining rows. */
async function disjointBatches(
  book: OpenBook,
  { request, admitted, rule, parent }: BanditRequest,
  found: {
    own: readonly StandingIncrement[];
    standing: readonly StandingIncrement[];
    train: readonly AdmittedStream[];
  },
): Promise<readonly Digest[]> {
  const taken = new Set<string>();
  const batches = new Map<Digest, readonly string[]>();
  for (const { batches: parts } of [...found.own, ...found.standing])
    for (const [digest, keys] of parts) {
      if (batches.has(digest) || keys.some((key) => taken.has(key))) continue;
      batches.set(digest, keys);
      for (const key of keys) taken.add(key);
    }
  const except = [...batches.keys()].sort();
  if (found.train.every(({ content, stream }) => taken.has(streamKey(content, stream)))) return except;
  const cut = await cutTrainingBatch(book, { request, admitted, rule, parent, except });
  return [...except, cut.digest];
}

async function freshFrom(
  book: OpenBook,
  options: {
    ids: ReadonlySet<string>;
    batches: readonly Digest[];
    rule: SplitRule;
    discount: number;
  },
): Promise<FreshDecisions> {
  const { ids, batches, rule, discount } = options;
  const rows: UnitRow[] = [];
  const used = new Set<Digest>();
  for (const batch of batches) {
    // A batch holds complete chains, so returns can be computed batch by batch.
    for (const row of returnsToGo(await readTraining(book, [batch]), discount)) {
      if (ids.has(row.id)) continue;
      rows.push({ ...row, unit: unitOf(row, rule.unit) });
      used.add(batch);
    }
  }
  return { batches: [...used], rows: each(rows) };
}

async function* rowsIn(book: OpenBook, batches: readonly Digest[]): AsyncGenerator<LoggedRow> {
  for (const batch of batches) yield* rowsOfBatch((digest) => book.store.get(digest), batch);
}

async function* each<T>(items: readonly T[]): AsyncGenerator<T> {
  yield* items;
}

/** A state keeps its features unless the request gives others. Increments are sorted, largest first. */
function largestSpec(standing: readonly StandingIncrement[]): FeatureSpec | undefined {
  return standing.find(({ features }) => features !== undefined)?.features;
}

function sameSpec(a: FeatureSpec | undefined, b: FeatureSpec | undefined): boolean {
  return canonicalize(a ?? null) === canonicalize(b ?? null);
}

/** Filters of the decisions that a state sums, in the form that its increments record. */
function filtersOf(request: DecisionRequest, family: string, rule: SplitRule): Record<string, string> {
  const { experiment, session, dataSource, sinceMs, untilMs, feedback } = request;
  const stated = {
    experiment,
    session,
    dataSource,
    feedback,
    since: timeOf(sinceMs),
    until: timeOf(untilMs),
  };
  const given = Object.entries(stated).filter(([, value]) => value !== undefined) as [string, string][];
  return {
    family,
    ...Object.fromEntries(given),
    split: `train of ${rule.shares.join("/")} by ${rule.unit}, ${rule.salt}`,
  };
}

/** Recorded only if it matters: a state of rollouts with one decision each is the same at every discount. */
function returnsIn(discount: number | undefined): Record<string, string> {
  return discount === undefined || discount === 0 ? {} : { returns: `discount ${discount}` };
}

function timeOf(ms: number | undefined): string | undefined {
  return ms === undefined ? undefined : new Date(ms).toISOString();
}
