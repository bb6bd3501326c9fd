/** Trains a policy and stores it: from decisions to a checkpoint and its revision, with a traceable lineage.
 *  In: a source, a learner, a split. Out: the checkpoint, written to the given folder; if the source is a book, also
 *  sealed there. From a book, it cuts a sealed batch and trains from its rows. A file enters the lineage by its digest,
 *  a replay store by the digest of its manifest. */
import { existsSync } from "node:fs";
import { join, relative } from "node:path";
import { type Clock, type Digest, given, parseId, RollbookError, systemClock } from "../../base/index.ts";
import { batchContent, type PolicyRevision, TrainerBatch } from "../../contract/index.ts";
import {
  areBilled,
  checkModel,
  DEFAULT_SPLIT,
  digestRows,
  type FitHooks,
  hasChains,
  type LoggedRow,
  requireWholeChains,
  returnsToGo,
  type SplitRule,
  unitOf,
  withReturnDiscount,
  withSplit,
} from "../../learn/index.ts";
import {
  CHECKPOINT_KIND,
  type Checkpoint,
  type PolicyModel,
  readCheckpoint,
  sealCheckpoint,
  type TrainingDataset,
  writeCheckpoint,
} from "../../policy/index.ts";
import { makeSealer, OWNER_ONLY, readRecord } from "../../store/index.ts";
import {
  type DatasetSource,
  type DecisionRequest,
  type DecisionSource,
  datasetOf,
  isDataset,
  loadDecisions,
  loadPart,
  logWarnings,
  requireDecisions,
  requirePart,
} from "../decisions/index.ts";
import { type EmbeddingPlace, embedRows } from "../embed/index.ts";
import { PROMISE_TERMS, type PromiseTerms, promiseFloor } from "../judge/index.ts";
import type { OpenBook } from "../open/index.ts";
import { type AdmittedRollouts, admittedRollouts, readRevision } from "../rollouts/index.ts";
import { banditOfBook } from "./bandit-of-book.ts";
import { discountOf, readsReturns } from "./discount.ts";
import { knownRevision, requireUnusedId } from "./known-revision.ts";
import { learnFromStore } from "./learn-from-store.ts";
import {
  banditModel,
  isBandit,
  isStoredLearner,
  type Learner,
  learn,
  readsChains,
  readsEmbeddings,
  requireLearner,
  weighsCost,
} from "./learners.ts";
import { checkedReport, type Taught, withFeatureRemedy, withTable, withUsual } from "./taught.ts";
import { cutTrainingBatch, readTraining, requireTraining, splitAdmitted } from "./training-batch.ts";
import { removeTrainingState, requireFreeFolder, trainingState } from "./training-state.ts";

/** Training is off-policy: it accepts rows of any age, but only labelled ones that were logged with a probability. */
interface TrainRequest extends Omit<DecisionRequest, "target" | "freshness" | "unlabelled" | "propensity"> {
  readonly learner: Learner;
  /** Id of the new revision. */
  readonly id: string;
  /** Family of the new revision (default: the parent's, else router). */
  readonly policy?: string | undefined;
  /** Parent of the new revision: the folder of a checkpoint, or a revision of the book. */
  readonly parent?: string | undefined;
  readonly split?: SplitRule;
  /** Discount per decision of a later reward (default: 1). A decision learns from the discounted return of its rollout
   *  from there on; with 0, from its own reward. A learner of chains has its own discount. */
  readonly discount?: number | undefined;
  /** Digest of a sealed batch of the book: trains from exactly its rows (default: a new batch is cut). */
  readonly batch?: Digest | undefined;
  readonly seed?: bigint;
  /** Folder for the checkpoint (default: not written). Never overwritten. */
  readonly out?: string | undefined;
  /** Also fits the static table that the same rows would give (default: yes). */
  readonly baseline?: boolean;
  /** Also stores the average request, which explanations compare with (default: yes). */
  readonly usual?: boolean;
  /** Sets the confidence floor on the calibration split: departures from the table lose at most this value in
   *  expectation. */
  readonly floorRisk?: number | undefined;
  readonly promise?: Partial<PromiseTerms>;
  /** Adds prompt embeddings to the input of a learner that predicts rewards. */
  readonly embeddings?: (EmbeddingPlace & { readonly model: string }) | undefined;
  readonly clock?: Clock;
  /** Called for every point of a learning curve. */
  readonly progress?: FitHooks["progress"];
}

export interface TrainedPolicy {
  readonly checkpoint: Checkpoint;
  readonly model: PolicyModel;
  /** Digest of the rows, of the batch, or of the state in the book. */
  readonly data: Digest;
  readonly batches: readonly Digest[];
  readonly datasets: readonly TrainingDataset[];
  readonly rows: number;
  /** Number of different units: rows of one unit are not independent evidence. */
  readonly units: number;
  /** Warnings about a policy trained from few units, or from one candidate. */
  readonly warnings: readonly string[];
  /** Decisions of the other splits. */
  readonly heldBack: number;
  /** Decisions that a bandit counted for the first time. */
  readonly added?: number;
  /** Admitted rollouts, and the ledger of the others; set only if the source is a book. */
  readonly admitted?: AdmittedRollouts;
  readonly report?: object;
  /** True if this call wrote the checkpoint to its folder; false if the folder already had it, or none was given. */
  readonly written: boolean;
  /** True if this call sealed the revision in the book; false if the book already had it. */
  readonly sealed: boolean;
  /** Lowest propensity of the calibration rows. */
  readonly leastPropensity: number;
}

export async function trainPolicy(source: DecisionSource, request: TrainRequest): Promise<TrainedPolicy> {
  const { id, seed = 0n, split: rule = DEFAULT_SPLIT, floorRisk } = request;
  requireLearner(request.learner);
  // A bandit may find its own revision in the folder.
  if (!isBandit(request.learner)) requireFreeFolder(request.out);
  const clock = request.clock ?? (isDataset(source) ? systemClock : source.clock);
  // The parent is read before a batch is cut, so that a missing parent leaves nothing behind.
  const parent = await parentFrom(source, request);
  const family = request.policy ?? parent?.family ?? "router";
  const taught = isDataset(source)
    ? await learnFromDataset(source, request, rule)
    : await learnFromBook(source, request, { rule, family });
  const calibration =
    floorRisk === undefined
      ? []
      : await embedded(await loadPart(source, request, { part: "calibration", rule }), request, source);
  const model = withSplit(chained(taught.model, taught.returnDiscount), {
    rule,
    units: { train: taught.units, calibration: calibration.map((row) => unitOf(row, rule.unit)) },
  });
  const { batches, datasets } = taught;
  const bare = sealCheckpoint(model, {
    ...{ family, id, batches, datasets, seed, producedAtMs: clock.nowMs() },
    ...(parent === undefined ? {} : { parent }),
  });
  const promise =
    floorRisk === undefined
      ? undefined
      : promiseFloor(bare, {
          ...{ rows: calibration, rule, alpha: floorRisk, atMs: clock.nowMs() },
          terms: { ...PROMISE_TERMS, ...request.promise },
        });
  const made = { ...bare, ...(promise === undefined ? {} : { promise }) };
  const { checkpoint, sealed, written } = await keepCheckpoint(source, request, {
    checkpoint: made,
    mayStand: taught.added !== undefined,
  });
  const { units: seen, model: _, report, leastTaught, mostCandidates, returnDiscount: __, ...facts } = taught;
  const units = new Set(seen).size;
  const warnings = logWarnings({
    ...{
      rows: seen.length,
      units,
      candidates: mostCandidates ?? model.arms.length,
      leastPropensity: leastTaught,
      purpose: "train",
    },
    unit: rule.unit,
  });
  const leastPropensity = calibration.reduce((least, row) => Math.min(least, row.propensity ?? 1), 1);
  return {
    ...{ ...facts, ...given({ report: withFeatureRemedy(report, source) }) },
    ...{ units, warnings, checkpoint, model, sealed, written, leastPropensity },
  };
}

async function learnFromDataset(
  source: DatasetSource,
  request: TrainRequest,
  rule: SplitRule,
): Promise<Taught> {
  const { learner, embeddings } = request;
  if ("replay" in source && isStoredLearner(learner) && embeddings === undefined)
    return learnFromStore(source.replay, { request: { ...request, learner }, rule });
  const loaded = await loadDecisions(source, request);
  const rows = requireDecisions(loaded.rows);
  if (readsReturns(request, rows)) requireWholeChains(rows, rule.unit);
  const train = requirePart(rows, "train", rule);
  return learnFrom(train, request, {
    source,
    data: digestRows(train, { callCosts: weighsCost(learner) && areBilled(train) }),
    batches: [],
    datasets: [await datasetOf(source, loaded)],
    units: train.map((row) => unitOf(row, rule.unit)),
    heldBack: rows.length - train.length,
  });
}

async function learnFromBook(
  book: OpenBook,
  request: TrainRequest,
  { rule, family }: { rule: SplitRule; family: string },
): Promise<Taught> {
  const { learner, parent, seed = 0n, batch: given, usual = true } = request;
  if (given !== undefined) return learnFromBatch(book, request, { batch: given, rule });
  const admitted = await admittedRollouts(book, {
    ...request,
    ...{ level: "step", target: undefined, freshness: "none", unlabelled: "exclude", propensity: "choice" },
  });
  if (isBandit(learner)) {
    const state = await banditOfBook(book, {
      ...{ request, admitted, rule, learner, parent },
      beforeNew: () => requireUnusedId(book, { family, id: request.id }),
    });
    const { statistics, digest: data, batches, units, added, heldBack, spec } = state;
    const model = banditModel(learner, statistics, { data, spec, seed });
    const rows = request.baseline === false ? [] : await readTraining(book, batches);
    return {
      ...{ data, batches, datasets: [], added, heldBack, returnDiscount: state.returnDiscount, admitted },
      model: withUsual(withTable(model, returnsToGo(rows, discountOf(request))), usual ? rows : []),
      ...(rows.length === 0
        ? {}
        : { report: checkModel(model, rows), mostCandidates: mostCandidatesOf(rows) }),
      units: [...units],
      ...{ rows: statistics.decisions, leastTaught: leastOf(rows) },
    };
  }
  const split = splitAdmitted(admitted, rule);
  requireTraining(admitted, split, { rule, request });
  const batch = await cutTrainingBatch(book, { request, admitted, rule, parent });
  const train = await readTraining(book, [batch.digest]);
  return learnFrom(train, request, {
    ...{ source: book, data: batch.digest, batches: [batch.digest], datasets: [], heldBack: split.heldBack },
    admitted,
    units: train.map((row) => unitOf(row, rule.unit)),
  });
}

/** The model names the batch by its content, so the time of recording does not change the model. */
async function learnFromBatch(
  book: OpenBook,
  request: TrainRequest,
  { batch, rule }: { batch: Digest; rule: SplitRule },
): Promise<Taught> {
  const train = await readTraining(book, [batch]);
  return learnFrom(requireDecisions(train), request, {
    data: batchContent(await readRecord(book.store, TrainerBatch, batch)),
    ...{ source: book, batches: [batch], datasets: [], heldBack: 0 },
    units: train.map((row) => unitOf(row, rule.unit)),
  });
}

async function learnFrom(
  rows: readonly LoggedRow[],
  request: TrainRequest,
  {
    source,
    ...facts
  }: Pick<Taught, "data" | "batches" | "datasets" | "units" | "heldBack" | "admitted"> & {
    source: DecisionSource;
  },
): Promise<Taught> {
  const { learner, seed = 0n, baseline, usual = true, out, progress } = request;
  const saver = out === undefined ? undefined : trainingState(out);
  const shown = await embedded(rows, request, source);
  const returns = returnsToGo(shown, discountOf(request));
  const data = { rows: readsChains(learner) ? shown : returns, digest: facts.data };
  const { model, report } = learn(data, withEmbedding(learner, request, shown), seed, { saver, progress });
  const counts = {
    ...{ rows: rows.length, leastTaught: leastOf(rows), mostCandidates: mostCandidatesOf(rows) },
  };
  return {
    ...{
      ...facts,
      ...counts,
      report: checkedReport(report, model, data.rows),
      returnDiscount: hasChains(rows) ? discountOf(request) : undefined,
    },
    model: withUsual(baseline === false ? model : withTable(model, returns), usual ? shown : []),
  };
}

function chained(model: PolicyModel, discount: number | undefined): PolicyModel {
  return discount === undefined ? model : withReturnDiscount(model, discount);
}

function leastOf(rows: readonly LoggedRow[]): number | null {
  let least: number | null = null;
  for (const { propensity } of rows) if (propensity !== null) least = Math.min(least ?? 1, propensity);
  return least;
}

function mostCandidatesOf(rows: readonly LoggedRow[]): number {
  return rows.reduce((most, { candidates }) => Math.max(most, candidates.length), 0);
}

/** Adds embeddings to the rows, if requested. */
async function embedded(
  rows: readonly LoggedRow[],
  { embeddings }: TrainRequest,
  source: DecisionSource,
): Promise<readonly LoggedRow[]> {
  if (embeddings === undefined) return rows;
  const cache = isDataset(source) ? undefined : source.root;
  return embedRows(rows, embeddings.model, { ...embeddings, cache: embeddings.cache ?? cache });
}

function withEmbedding(learner: Learner, { embeddings }: TrainRequest, rows: readonly LoggedRow[]): Learner {
  if (embeddings === undefined) return learner;
  const size = rows.find(({ context }) => context.embedding !== undefined)?.context.embedding?.length;
  if (!readsEmbeddings(learner) || size === undefined)
    throw new RollbookError(
      "bad-options",
      { learner: learner.kind },
      size === undefined
        ? "no row has a prompt, so there is nothing to embed. Leave --embeddings out."
        : `${learner.kind} does not read embeddings. Use auto, ridge, logistic or knn.`,
    );
  return { ...learner, embedding: { model: embeddings.model, size } };
}

/** Reads the parent: a folder with a checkpoint or, if the source is a book, a revision there. A revision that decided
 *  logged rows has no checkpoint. */
async function parentFrom(
  source: DecisionSource,
  { parent, policy }: TrainRequest,
): Promise<PolicyRevision | undefined> {
  if (parent === undefined) return undefined;
  if (existsSync(parent)) return readCheckpoint(parent).revision.record;
  if (isDataset(source))
    throw new RollbookError(
      "no-parent",
      { parent },
      `--parent ${parent} is not a folder, and with --data or --replay no book is read that may have a revision of this id. Name the folder of its checkpoint.`,
    );
  return (await readRevision(source, parent, policy === undefined ? undefined : parseId(policy))).record;
}

/** True if the folder lies in the book: such a checkpoint is as private as the book. */
function isInBook(source: DecisionSource, out: string): boolean {
  return !isDataset(source) && !relative(source.root, out).startsWith("..");
}

/** Stores the checkpoint in its folder and in the book. A bandit whose state has not grown changes neither. */
async function keepCheckpoint(
  source: DecisionSource,
  { out }: TrainRequest,
  { checkpoint, mayStand }: { checkpoint: Checkpoint; mayStand: boolean },
): Promise<Pick<TrainedPolicy, "checkpoint" | "sealed" | "written">> {
  const standing = mayStand && out !== undefined ? standingAt(out, checkpoint) : undefined;
  if (standing !== undefined) return { checkpoint: standing, sealed: false, written: false };
  const known = isDataset(source) ? undefined : await knownRevision(source, checkpoint.revision.record);
  const kept = known === undefined ? checkpoint : { ...checkpoint, revision: known };
  if (out !== undefined) {
    writeCheckpoint(out, kept, { mode: isInBook(source, out) ? OWNER_ONLY : undefined });
    removeTrainingState(out);
  }
  const written = out !== undefined;
  if (isDataset(source) || known !== undefined) return { checkpoint: kept, sealed: false, written };
  const { revision, promise, bytes } = checkpoint;
  await makeSealer(source.store, source.signer).add({
    envelope: revision,
    blobs: [{ kind: CHECKPOINT_KIND, bytes }, revision, ...(promise === undefined ? [] : [promise])],
  });
  return { checkpoint, sealed: true, written };
}

/** Checkpoint in the folder if it is the same revision: then there is nothing to do. */
function standingAt(out: string, { revision: { record } }: Checkpoint): Checkpoint | undefined {
  if (!existsSync(join(out, "revision.json"))) return undefined;
  const known = readCheckpoint(out);
  const { id, digest, parent } = known.revision.record;
  const same = id === record.id && digest === record.digest && parent?.digest === record.parent?.digest;
  return same ? known : undefined;
}
