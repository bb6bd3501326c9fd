/** Reads decision rows from a replay store: its chains of steps, with the rewards they were written with.
 *  In: an open store. Out: chains one at a time, in the order of the store; memory holds some chains and their
 *  candidates. Every array that is read must match its digest in the manifest, so the manifest's digest identifies the
 *  rows. `validateReplay` checks the values. A chain whose target is not valid is left out, because its ending is no
 *  evidence about the policy. */
import { RollbookError } from "../../base/index.ts";
import { taskOf } from "../../contract/index.ts";
import { decisionId } from "../../keep/admit/index.ts";
import {
  type ChainWindow,
  type ColumnName,
  type ColumnsOf,
  chainWindows,
  digestStoredArray,
  type ReplaySegment,
  type ReplayStore,
  runs,
  type SegmentReader,
  type TableName,
} from "../../keep/replay/index.ts";
import type { LoggedCandidate, LoggedRow, StoredRow } from "../../learn/index.ts";

const CHAIN = ["rollout", "stream", "family", "group", "target", "ending"] as const;
const STEP = ["source", "candidates_start", "candidates_count", "selected", "probability", "reward"] as const;
const SOURCE = ["task", "data_source", "features_start", "features_length"] as const;
const CANDIDATE = [
  "id",
  "selectable",
  "probability",
  "reasons",
  "features_start",
  "features_length",
] as const;
const ARRAYS: { readonly [T in TableName]?: readonly ColumnName<T>[] } = {
  chains: [...CHAIN, "steps_start", "steps_count"],
  ...{ steps: STEP, sources: SOURCE, candidates: CANDIDATE },
  ...{ source_features: ["value"], candidate_features: ["value"], targets: ["valid"], dictionary: ["text"] },
};

/** Maximum count of candidate and context numbers in memory; a single chain may exceed it. */
const MOST_NUMBERS = 1 << 20;

interface ReplayRowOptions {
  readonly mostNumbers?: number;
}

/** Yields one chain at a time, each decision with its row of `q_h`. */
export async function* replayChains(
  { segments, manifest }: ReplayStore,
  { mostNumbers = MOST_NUMBERS }: ReplayRowOptions = {},
): AsyncGenerator<readonly StoredRow[]> {
  for (const { reader, index, first } of segments) {
    const entry = manifest.segments[index]!;
    await checkArrays(reader, entry);
    const { valid } = await reader.read("targets", ["valid"]);
    const texts = await reader.texts();
    const segment = {
      ...{ reader, entry, valid, texts, reasons: manifest.reasons, mostNumbers, firstState: first.q_h },
    };
    for await (const window of chainWindows(reader, { chains: CHAIN, steps: STEP }))
      yield* rowsOfWindow(segment, window);
  }
}

interface StoreSegment {
  readonly reader: SegmentReader;
  readonly entry: ReplaySegment;
  readonly valid: Uint8Array;
  readonly texts: readonly string[];
  readonly reasons: readonly string[];
  readonly mostNumbers: number;
  /** Index of the segment's first state in the whole store. */
  readonly firstState: number;
}

async function checkArrays({ store }: SegmentReader, { path: place, arrays }: ReplaySegment): Promise<void> {
  for (const [table, columns] of Object.entries(ARRAYS))
    for (const column of columns) {
      const path = `${table}/${column}`;
      const { array: actual } = await digestStoredArray(store, path);
      if (actual === arrays[path]) continue;
      throw new RollbookError(
        "digest-mismatch",
        { segment: place, path, expected: arrays[path], actual },
        `${place === "" ? path : `${place}/${path}`}: content is ${actual}, the manifest says ${arrays[path]}. Restore the store from a copy; \`replay validate\` lists all damage.`,
      );
    }
}

type DecisionWindow = ChainWindow<(typeof CHAIN)[number], (typeof STEP)[number]>;

async function* rowsOfWindow(
  segment: StoreSegment,
  window: DecisionWindow,
): AsyncGenerator<readonly StoredRow[]> {
  const { chains, steps, firstStep } = window;
  const { maxContext, maxFeatures } = segment.entry;
  const from = (chain: number) => chains.steps_start[chain]! - firstStep;
  const to = (chain: number) => from(chain) + chains.steps_count[chain]!;
  const numbers = Array.from(chains.steps_count, (count, chain) => {
    const counts = steps.candidates_count.subarray(from(chain), to(chain));
    return count * maxContext + counts.reduce((sum, each) => sum + each * (1 + maxFeatures), 0);
  });
  for (const [low, high] of runs(numbers, segment.mostNumbers)) {
    if (from(low) === to(high - 1)) continue;
    const shown = await readShown(segment.reader, steps, { from: from(low), to: to(high - 1) });
    for (let chain = low; chain < high; chain++)
      if (segment.valid[chains.target[chain]!] === 1 && from(chain) < to(chain))
        yield rowsOfChain(segment, { window, chain, from: from(chain), to: to(chain), shown });
  }
}

/** Data shown at a range of steps: one source per step, and the candidates of all of them. */
interface Shown {
  readonly firstStep: number;
  readonly firstCandidate: number;
  readonly sources: ColumnsOf<"sources", (typeof SOURCE)[number]>;
  readonly contexts: readonly Float32Array[];
  readonly candidates: ColumnsOf<"candidates", (typeof CANDIDATE)[number]>;
  readonly features: readonly Float32Array[];
}

async function readShown(
  reader: SegmentReader,
  steps: DecisionWindow["steps"],
  { from, to }: { from: number; to: number },
): Promise<Shown> {
  const rows = steps.source.subarray(from, to);
  const columns = await Promise.all(SOURCE.map((column) => reader.gather("sources", column, rows)));
  const sources = Object.fromEntries(SOURCE.map((name, i) => [name, columns[i]])) as Shown["sources"];
  const firstCandidate = steps.candidates_start[from]!;
  const end = steps.candidates_start[to - 1]! + steps.candidates_count[to - 1]!;
  const candidates = await reader.read("candidates", CANDIDATE, { from: firstCandidate, to: end });
  return {
    ...{ firstStep: from, firstCandidate, sources, candidates },
    contexts: await readFeatures(reader, "source_features", sources),
    features: await readFeatures(reader, "candidate_features", candidates),
  };
}

async function readFeatures(
  reader: SegmentReader,
  table: "source_features" | "candidate_features",
  {
    features_start: starts,
    features_length: lengths,
  }: { features_start: BigInt64Array; features_length: Int32Array },
): Promise<Float32Array[]> {
  const rows = new Float64Array(lengths.reduce((sum, length) => sum + length, 0));
  let at = 0;
  lengths.forEach((length, i) => {
    for (let k = 0; k < length; k++) rows[at++] = Number(starts[i]!) + k;
  });
  const values = rows.length === 0 ? new Float32Array(0) : await reader.gather(table, "value", rows);
  let end = 0;
  return Array.from(lengths, (length) => {
    end += length;
    return values.subarray(end - length, end);
  });
}

function rowsOfChain(
  segment: StoreSegment,
  {
    window,
    chain,
    from,
    to,
    shown,
  }: { window: DecisionWindow; chain: number; from: number; to: number; shown: Shown },
): StoredRow[] {
  const { chains, steps } = window;
  const { texts } = segment;
  const rollout = chains.rollout[chain]!;
  const id = (index: number) => decisionId(rollout, chains.stream[chain]!, index);
  // A chain that lacks a reward is unlabelled as a whole, as in a batch.
  const labelled = steps.reward.subarray(from, to).every((reward) => !Number.isNaN(reward));
  const ended = texts[chains.ending[chain]!] === "terminal";
  return Array.from({ length: to - from }, (_, index) => {
    const step = from + index;
    const seen = step - shown.firstStep;
    const fields = namedOnce("f", shown.contexts[seen]!);
    const row: LoggedRow = {
      ...{ id: id(index), chain: id(0) },
      task: taskOf({ task: { id: texts[shown.sources.task[seen]!]! }, rolloutId: rollout }),
      session: texts[chains.group[chain]!] ?? rollout,
      family: texts[chains.family[chain]!]!,
      // A replay store does not keep times.
      atMs: 0,
      source: sourceOf(texts[shown.sources.data_source[seen]!]),
      context: {
        prompt: "",
        get fields() {
          return fields();
        },
      },
      candidates: candidatesAt(segment, steps, { step, shown }),
      chosen: steps.selected[step]! - steps.candidates_start[step]!,
      propensity: known(steps.probability[step]!),
      reward: labelled ? steps.reward[step]! : null,
      terminal: ended && step === to - 1,
      terms: {},
      rewardFrom: "replay",
    };
    const numbers = shown.contexts[seen]!.length;
    return { row, state: segment.firstState + window.firstStep + step, numbers };
  });
}

function candidatesAt(
  { texts, reasons }: StoreSegment,
  steps: DecisionWindow["steps"],
  { step, shown: { candidates, features, firstCandidate } }: { step: number; shown: Shown },
): LoggedCandidate[] {
  const first = steps.candidates_start[step]! - firstCandidate;
  return Array.from({ length: steps.candidates_count[step]! }, (_, i) => {
    const bits = candidates.reasons[first + i]!;
    const numbers = namedOnce("c", features[first + i]!);
    return {
      id: texts[candidates.id[first + i]!]!,
      selectable: candidates.selectable[first + i] === 1,
      reasons: bits === 0n ? [] : reasons.filter((_, bit) => (bits >> BigInt(bit)) & 1n),
      probability: known(candidates.probability[first + i]!),
      get features() {
        return numbers();
      },
    };
  });
}

/** Adds names on first access: named numbers take twenty times the memory. */
function namedOnce(letter: "f" | "c", values: Float32Array): () => Record<string, number> {
  let known: Record<string, number> | undefined;
  return () => {
    known ??= named(letter, values);
    return known;
  };
}

/** The store has no names for features, so they are numbered. */
function named(letter: "f" | "c", values: Float32Array): Record<string, number> {
  return Object.fromEntries(Array.from(values, (value, i) => [`${letter}${i}`, value]));
}

function known(value: number): number | null {
  return Number.isNaN(value) ? null : value;
}

function sourceOf(text: string | undefined): LoggedRow["source"] {
  return text === "real" || text === "synthetic" ? text : "unknown";
}
