/** The decisions of a replay store as training rows of a network, in bounded memory. The columns of every row are in
 *  memory; states are read from the store for each minibatch, through its cache of decoded chunks.
 *  In: chains in the order of the store, with the place of each row. Out: training rows that give the same bits as the
 *  same rows in memory. Does not know how a store's chains are read. */
import { type Digest, GrowingColumn, type Rng } from "../../base/index.ts";
import { contextsOf, type ReplayStore } from "../../keep/replay/index.ts";
import type { FeatureSpec } from "../../policy/index.ts";
import { gatherRows, type LoggedRow } from "../rows/index.ts";
import { ChainColumns, pick } from "./chain-columns.ts";
import { type CqlConfig, learnCql } from "./cql.ts";
import type { FitHooks } from "./fit.ts";
import { learnNeuralBc, type NeuralBcConfig } from "./neural-bc.ts";
import { neuralSpec } from "./setup.ts";
import type { NetworkRows, NeuralTrained } from "./train-network.ts";
import { chainReturns, neuralReader, type StateRows } from "./transitions.ts";
import { runWaiting } from "./work.ts";

/** Learners that can train a network from a store. */
export type StoredLearner =
  | ({ readonly kind: "cql" } & CqlConfig)
  | ({ readonly kind: "neural-bc" } & NeuralBcConfig);

/** A decision of a store, the row of `q_h` that holds its state, and the number of values in its context. */
export interface StoredRow {
  readonly row: LoggedRow;
  readonly state: number;
  readonly numbers: number;
}

export class StoredRows {
  readonly #store: ReplayStore;
  readonly #learner: StoredLearner;
  readonly #columns = new ChainColumns();
  /** State rows in the order of adding. */
  readonly #states = new GrowingColumn("i32");
  /** The row with the longest context: it has every feature that occurs. */
  #widest: StoredRow | undefined;

  constructor(store: ReplayStore, learner: StoredLearner) {
    this.#store = store;
    this.#learner = learner;
  }

  /** Adds the rows of one chain, in the order of their steps. */
  add(chain: readonly StoredRow[]): void {
    const rows = chain.map(({ row }) => row);
    const { kind, ...config } = this.#learner;
    const returns = kind === "cql" && (config as CqlConfig).goal === "return";
    const goals = returns ? chainReturns(rows, (config as CqlConfig).discount ?? 0) : rows;
    if (!this.#columns.add(goals)) return;
    for (const row of chain) {
      this.#states.push(row.state);
      if (row.numbers > (this.#widest?.numbers ?? -1)) this.#widest = row;
    }
  }

  train(digest: Digest, rng: Rng, hooks: FitHooks = {}): Promise<NeuralTrained> {
    const { columns, from } = this.#columns.finish();
    const places = pick(this.#states.take(), from);
    const rows: NetworkRows = {
      digest,
      defaultSpec: () => neuralSpec([this.#widest!.row]),
      transitions: (spec) => ({ ...columns, states: storedStates(this.#store, places, spec) }),
    };
    const { kind, ...config } = this.#learner;
    return runWaiting((kind === "cql" ? learnCql : learnNeuralBc)(rows, config, rng, hooks));
  }
}

/** The values of a store's contexts are the fields f0, f1, …. The same reader reads them as for any row. */
function storedStates(store: ReplayStore, places: Int32Array, spec: FeatureSpec): StateRows {
  const reader = neuralReader(spec);
  const named = spec.fields.flatMap(({ name }) => {
    const number = /^f(\d+)$/.exec(name)?.[1];
    return number === undefined ? [] : [{ name, at: Number(number) }];
  });
  return {
    size: reader.size,
    async block(rows) {
      const asked = rows.filter((row) => row >= 0);
      const { width, values, lengths } = await contextsOf(
        store,
        asked.map((row) => places[row]!),
      );
      // One object for all rows: an object with hundreds of properties is slow to create.
      const fields: Record<string, number | undefined> = {};
      const context = { prompt: "", fields: fields as Record<string, number> };
      const sparse = gatherRows([...asked.keys()], reader.size, (i) => {
        for (const { name, at } of named)
          fields[name] = at < lengths[i]! ? values[i * width + at]! : undefined;
        return reader.context(context);
      });
      let found = 0;
      return { sparse, places: rows.map((row) => (row < 0 ? row : found++)) };
    },
  };
}
