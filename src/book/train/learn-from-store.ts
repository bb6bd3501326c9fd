/** Trains a network from a replay store of any size. One pass over its chains fills columns; then every minibatch reads
 *  its states through the store's cache of decoded chunks.
 *  In: the directory of a store, a request, a split. Out: the model and its training data. The heap holds the tasks,
 *  one id per chain during the pass, and a sample of rows for the static table. */
import { type Digest, digestJson, type Json, rngFrom } from "../../base/index.ts";
import type { ReplayStore } from "../../keep/replay/index.ts";
import {
  type DecisionRow,
  type FitHooks,
  hasChains,
  type LoggedRow,
  partOf,
  requireWholeChains,
  returnsToGo,
  type SplitRule,
  type StoredLearner,
  type StoredRow,
  StoredRows,
  unitOf,
} from "../../learn/index.ts";
import {
  type DecisionRequest,
  emptyPart,
  requireDecisions,
  usableChains,
  withStore,
} from "../decisions/index.ts";
import { discountOf, readsReturns } from "./discount.ts";
import { readsChains } from "./learners.ts";
import { type Taught, withTable } from "./taught.ts";
import { trainingState } from "./training-state.ts";

interface StoreRequest extends DecisionRequest {
  readonly learner: StoredLearner;
  readonly discount?: number | undefined;
  readonly seed?: bigint;
  readonly out?: string | undefined;
  readonly baseline?: boolean;
  readonly progress?: FitHooks["progress"];
}

interface StoreTraining {
  readonly request: StoreRequest;
  readonly rule: SplitRule;
}

export async function learnFromStore(root: string, { request, rule }: StoreTraining): Promise<Taught> {
  const { seed = 0n, out, progress, baseline } = request;
  return withStore(root, request, async (store) => {
    const read = await readChains(store, { root, request, rule });
    const { rows, stored, units, sample, heldBack, leastTaught, mostCandidates, returnDiscount } = read;
    const data = digestSelection(store, { request, rule });
    const saver = out === undefined ? undefined : trainingState(out);
    const { model, report } = await stored.train(data, rngFrom(seed), { saver, progress });
    return {
      ...{
        report,
        data,
        batches: [],
        heldBack,
        rows,
        leastTaught,
        mostCandidates,
        returnDiscount,
        units: [...units],
      },
      datasets: [{ kind: "replay-store", digest: store.manifest.digest }],
      model: baseline === false ? model : withTable(model, sample),
    };
  });
}

async function readChains(store: ReplayStore, { root, request, rule }: StoreTraining & { root: string }) {
  const stored = new StoredRows(store, request.learner);
  const sample = new TableSample(store, request.seed ?? 0n);
  const [units, others] = [new Set<string>(), new Set<string>()];
  let [rows, heldBack] = [0, 0];
  let leastTaught: number | null = null;
  let mostCandidates = 0;
  let chained = false;
  for await (const chain of usableChains(store, request, root)) {
    const raw = chain.map(({ row }) => row);
    if (readsReturns(request, raw)) requireWholeChains(raw, rule.unit);
    const returns = returnsToGo(raw, discountOf(request));
    const goals = chain.map((each, i) => ({ ...each, row: returns[i]! }));
    const train = goals.filter(({ row }) => {
      const unit = unitOf(row, rule.unit);
      const isTrain = partOf(unit, rule) === "train";
      (isTrain ? units : others).add(unit);
      return isTrain;
    });
    rows += train.length;
    heldBack += chain.length - train.length;
    if (train.length > 0) stored.add(readsChains(request.learner) ? own(chain, train) : train);
    chained ||= train.length > 1 && hasChains(raw);
    for (const { row } of train) {
      if (request.baseline !== false) sample.add(row);
      mostCandidates = Math.max(mostCandidates, row.candidates.length);
      if (row.propensity !== null) leastTaught = Math.min(leastTaught ?? 1, row.propensity);
    }
  }
  if (rows + heldBack === 0) requireDecisions([]);
  if (rows === 0) throw emptyPart("train", { rows: heldBack, units: others.size, unit: rule.unit });
  const returnDiscount = chained ? discountOf(request) : undefined;
  return { stored, units, sample: sample.rows, rows, heldBack, leastTaught, mostCandidates, returnDiscount };
}

/** Selected decisions of a chain with their own rewards: a learner of chains sums them itself. */
function own(chain: readonly StoredRow[], taken: readonly StoredRow[]): readonly StoredRow[] {
  const ids = new Set(taken.map(({ row }) => row.id));
  return chain.filter(({ row }) => ids.has(row.id));
}

/** Digest of everything that determines the rows: the store, the filters and the split. */
function digestSelection({ manifest }: ReplayStore, { request, rule }: StoreTraining): Digest {
  const { family, session, dataSource } = request;
  const filters = { family: family ?? null, session: session ?? null, dataSource: dataSource ?? null };
  return digestJson("rollbook.replay-selection.v1", {
    ...{ manifest: manifest.digest, filters, split: rule as unknown as Json },
  });
}

/** Maximum total of context numbers in the sample. */
const SAMPLED_NUMBERS = 1 << 18;

/** Rows for the static table: all rows, or a uniform sample if there are more than the heap should hold. */
class TableSample {
  readonly rows: DecisionRow[] = [];
  readonly #most: number;
  readonly #rng;
  readonly #candidates = new Map<string, DecisionRow["candidates"]>();
  #seen = 0;

  constructor({ manifest }: ReplayStore, seed: bigint) {
    const width = manifest.segments.reduce((most, { maxContext }) => Math.max(most, maxContext), 1);
    this.#most = Math.ceil(SAMPLED_NUMBERS / width);
    this.#rng = rngFrom(seed).split("table");
  }

  add({ id, context, candidates, chosen, propensity, reward }: LoggedRow): void {
    const at = this.#seen++ < this.#most ? this.rows.length : this.#rng.below(this.#seen);
    if (at >= this.#most) return;
    const { prompt, fields } = context;
    this.rows[at] = {
      ...{ id, context: { prompt, fields }, candidates: this.#shared(candidates) },
      ...{ chosen, propensity, reward },
    };
  }

  /** Most rows have the same candidates, so each set is stored once. */
  #shared(candidates: DecisionRow["candidates"]): DecisionRow["candidates"] {
    const key = JSON.stringify(candidates.map(({ id, selectable }) => [id, selectable]));
    const known =
      this.#candidates.get(key) ??
      candidates.map(({ id, selectable }) => ({ id, selectable, reasons: [], features: {} }));
    this.#candidates.set(key, known);
    return known;
  }
}
