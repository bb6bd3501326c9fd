/** Minibatches: states drawn in a seeded order, with the inputs of the actor, and separately the data that a learner
 *  needs.
 *  In: a store, an Rng, states. Out: dense typed arrays. Reads only the rows of the batch; an epoch holds eight bytes
 *  per state. Two functions return two objects: code that gets `actorInputs` cannot see the answers. */
import { type Rng, RollbookError } from "../../../base/index.ts";
import { type ColumnName, type ColumnsOf, columnOf } from "../tables/index.ts";
import { emptyValues, type NumericValues } from "../zarr/index.ts";
import { spreadRows } from "./dense-reader.ts";
import { type PlacedSegment, type ReplayStore, rebase } from "./replay-store.ts";

/** Inputs of a policy: `states` rows of context, `states × width` candidates with their features. */
interface ActorInputs {
  readonly states: number;
  readonly width: number;
  readonly contextWidth: number;
  readonly featureWidth: number;
  /** states × contextWidth; shorter contexts are padded with zeros. */
  readonly context: Float32Array;
  /** states × width × featureWidth; padded with zeros. */
  readonly features: Float32Array;
  readonly candidateCount: Int32Array;
  /** states × width. */
  readonly selectable: Uint8Array;
}

const SUPERVISION = [
  ...(["selected_index", "reward", "return_to_go", "discount", "terminal", "truncated"] as const),
  ...(["next_state", "labelled", "trainable", "selected", "label", "probability"] as const),
] as const;
/** Decisions and outcomes of the same states. Padded columns are states × width. */
type Supervision = ColumnsOf<"q_h", (typeof SUPERVISION)[number]> & { readonly width: number };

export interface Minibatch {
  /** Rows of q_h. */
  readonly states: Uint32Array;
  readonly actor: ActorInputs;
  readonly supervision: Supervision;
}

export interface MinibatchOptions {
  readonly size: number;
  readonly rng: Rng;
  /** Number of passes over all states, each in a new order; default 1. */
  readonly epochs?: number;
  /** Only states of tasks in this split. */
  readonly split?: string;
}

/** Every state once per epoch, in an order that only the seed determines; the last batch may be smaller. */
export async function* minibatches(store: ReplayStore, options: MinibatchOptions): AsyncGenerator<Minibatch> {
  const { size, rng, epochs = 1, split } = options;
  if (!Number.isInteger(size) || size < 1)
    throw new RollbookError("bad-batch-size", { size }, `a minibatch of ${size} states is not possible.`);
  const all = await statesOf(store, split);
  for (let epoch = 0; epoch < epochs; epoch++) {
    const order = Uint32Array.from(all);
    shuffle(order, rng.split(epoch));
    for (let at = 0; at < order.length; at += size) {
      const states = order.slice(at, at + size);
      yield {
        states,
        actor: await actorInputs(store, states),
        supervision: await supervision(store, states),
      };
    }
  }
}

/** Rows of q_h whose task is in `split`; all rows without a split. Rows of q_h are rows of steps, so the split is read
 *  from the facts and not from the derived view. */
async function statesOf(store: ReplayStore, split?: string): Promise<Uint32Array> {
  if (split === undefined) return Uint32Array.from({ length: store.rows("q_h") }, (_, i) => i);
  const states = new Uint32Array(store.rows("q_h"));
  let count = 0;
  for (const { reader, first } of store.segments) {
    const texts = await reader.texts();
    const { split: splits } = await reader.read("sources", ["split"]);
    const wanted = texts.indexOf(split);
    const array = await reader.array("steps", "source");
    for await (const chunk of array.chunks()) {
      const sources = chunk.values as Int32Array;
      for (let i = 0; i < sources.length; i++) {
        const own = splits[sources[i]!];
        if (own === undefined)
          throw noSource(chunk.from + i, { source: sources[i]!, sources: splits.length });
        if (wanted >= 0 && own === wanted) states[count++] = first.q_h + chunk.from + i;
      }
    }
  }
  return states.subarray(0, count);
}

function noSource(step: number, facts: { source: number; sources: number }): RollbookError {
  return new RollbookError(
    "replay-bad-source",
    { step, ...facts },
    `step ${step} names the source ${facts.source}, of ${facts.sources} that there are. Restore the store from a copy; \`replay validate\` lists all damage.`,
  );
}

async function supervision(store: ReplayStore, states: ArrayLike<number>): Promise<Supervision> {
  return { width: store.width, ...(await gather(store, SUPERVISION, states)) };
}

export async function actorInputs(store: ReplayStore, states: ArrayLike<number>): Promise<ActorInputs> {
  const { width } = store;
  const [contextWidth, featureWidth] = [widest(store, "maxContext"), widest(store, "maxFeatures")];
  const { candidate_count, selectable } = await gather(store, ["candidate_count", "selectable"], states);
  const count = states.length;
  const context = new Float32Array(count * contextWidth);
  const features = new Float32Array(count * width * featureWidth);
  for (const { segment, at, rows } of bySegment(store, states)) {
    if (contextWidth > 0) await readContext(segment, { at, rows, into: context, width: contextWidth });
    if (featureWidth > 0) await readFeatures(segment, { at, rows, into: features, width, featureWidth });
  }
  return {
    states: count,
    width,
    contextWidth,
    featureWidth,
    context,
    features,
    candidateCount: candidate_count,
    selectable,
  };
}

/** Context of a policy beside its candidates: `states` rows of `width` numbers. The first `lengths[i]` numbers of row i
 *  are known. */
interface Contexts {
  readonly width: number;
  readonly values: Float32Array;
  readonly lengths: Int32Array;
}

export async function contextsOf(store: ReplayStore, states: ArrayLike<number>): Promise<Contexts> {
  const width = widest(store, "maxContext");
  const values = new Float32Array(states.length * width);
  const lengths = new Int32Array(states.length);
  for (const { segment, at, rows } of bySegment(store, states))
    if (width > 0) await readContext(segment, { at, rows, into: values, width, lengths });
  return { width, values, lengths };
}

function widest({ manifest }: ReplayStore, name: "maxContext" | "maxFeatures"): number {
  return manifest.segments.reduce((most, segment) => Math.max(most, segment[name]), 0);
}

interface PlacedRows {
  segment: PlacedSegment;
  /** Positions in the batch, and the corresponding rows of the segment. */
  at: number[];
  rows: number[];
}

function bySegment(store: ReplayStore, states: ArrayLike<number>): PlacedRows[] {
  const placed = new Map<PlacedSegment, PlacedRows>();
  for (let i = 0; i < states.length; i++) {
    const segment = store.segmentOf("q_h", states[i]!);
    const entry = placed.get(segment) ?? { segment, at: [], rows: [] };
    placed.set(segment, entry);
    entry.at.push(i);
    entry.rows.push(states[i]! - segment.first.q_h);
  }
  return [...placed.values()];
}

/** Columns of q_h for the given states, in their order, padded to the width of the store. */
async function gather<C extends ColumnName<"q_h">>(
  store: ReplayStore,
  columns: readonly C[],
  states: ArrayLike<number>,
): Promise<ColumnsOf<"q_h", C>> {
  const placed = bySegment(store, states);
  const out: Record<string, NumericValues> = {};
  for (const column of columns) {
    const spec = columnOf("q_h", column);
    const width = spec.pad === undefined ? 1 : store.width;
    const values = emptyValues(spec.dtype, states.length * width) as NumericValues;
    if (spec.pad !== undefined) values.fill(spec.pad as never);
    for (const { segment, at, rows } of placed) {
      const array = await segment.reader.array("q_h", column);
      const read = (await array.gather(rows)) as NumericValues;
      rebase(read, spec, segment.first);
      at.forEach((to, i) => {
        const row = read.subarray(i * array.width, (i + 1) * array.width) as NumericValues;
        spreadRows(row, array.width, { into: values.subarray(to * width) as NumericValues, width });
      });
    }
    out[column] = values;
  }
  return out as ColumnsOf<"q_h", C>;
}

async function readContext(
  { reader }: PlacedSegment,
  {
    at,
    rows,
    into,
    width,
    lengths: known,
  }: { at: number[]; rows: number[]; into: Float32Array; width: number; lengths?: Int32Array },
): Promise<void> {
  // Rows of q_h are rows of steps. `--replay` checks the digests of the facts, not those of the derived view.
  const sources = await reader.gather("steps", "source", rows);
  const starts = await reader.gather("sources", "features_start", sources);
  const lengths = await reader.gather("sources", "features_length", sources);
  const values = await reader.array("source_features", "value");
  for (let i = 0; i < rows.length; i++) {
    const from = Number(starts[i]!);
    if (known !== undefined) known[at[i]!] = lengths[i]!;
    const target = into.subarray(at[i]! * width, at[i]! * width + lengths[i]!);
    await values.read({ from, to: from + lengths[i]!, into: target });
  }
}

/** The candidates of a state are adjacent, and so are their features: one read per state. */
async function readFeatures(
  { reader }: PlacedSegment,
  {
    at,
    rows,
    into,
    width,
    featureWidth,
  }: { at: number[]; rows: number[]; into: Float32Array; width: number; featureWidth: number },
): Promise<void> {
  const starts = await reader.gather("steps", "candidates_start", rows);
  const counts = await reader.gather("steps", "candidates_count", rows);
  const values = await reader.array("candidate_features", "value");
  for (let i = 0; i < rows.length; i++) {
    const range = { from: starts[i]!, to: starts[i]! + counts[i]! };
    const places = await reader.read("candidates", ["features_start", "features_length"], range);
    const from = Number(places.features_start[0]!);
    const last = counts[i]! - 1;
    const to = Number(places.features_start[last]!) + places.features_length[last]!;
    const read = (await values.read({ from, to })) as Float32Array;
    for (let k = 0; k <= last; k++) {
      const start = Number(places.features_start[k]!) - from;
      const cell = (at[i]! * width + k) * featureWidth;
      into.set(read.subarray(start, start + places.features_length[k]!), cell);
    }
  }
}

/** Fisher–Yates over a typed array. */
function shuffle(order: Uint32Array, rng: Rng): void {
  for (let i = order.length - 1; i > 0; i--) {
    const j = rng.below(i + 1);
    const held = order[i]!;
    order[i] = order[j]!;
    order[j] = held;
  }
}
