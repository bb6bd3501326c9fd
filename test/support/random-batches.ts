/** Random rows of trainer batches, sealed like a real batch, so that the expected output of a reader is known. Values
 *  go beyond those of assembly: negative zeros, any Unicode in names, probabilities that were not logged. */
import fc from "fast-check";
import { columnFrom } from "../../src/base/arrays.ts";
import { type Digest, digestJson } from "../../src/base/digest.ts";
import { type Id, parseId } from "../../src/base/ids.ts";
import { seal, sealLineage, TrainerBatch } from "../../src/contract/index.ts";
import type { BatchStep, StepBatchRow, TokenBatchRow } from "../../src/keep/batch/index.ts";
import { ShardWriter } from "../../src/keep/batch/shard-writer.ts";
import { anyDigest, anyFinite, anyId } from "./arbitraries.ts";
import { FAMILY, makeRevision, Shelf } from "./shelf.ts";

export type ExpectedRow = TokenBatchRow | StepBatchRow;

export interface RandomBatch {
  readonly level: "token" | "step";
  readonly shardTokens: number;
  readonly rows: readonly ExpectedRow[];
}

const SOURCES = ["policy-r1", "policy-r2", "～r3"].map((id) => makeRevision(id, { number: 1n }));
const anyF32 = fc.float({ noNaN: true, noDefaultInfinity: true });
const anyU32 = fc.oneof(fc.nat({ max: 9 }), fc.nat({ max: 2 ** 32 - 1 }));

const facts = {
  content: anyDigest,
  stream: fc.nat({ max: 3 }),
  rolloutId: anyId.map((text) => parseId(text)),
  group: fc.option(
    anyId.map((text) => parseId(text)),
    { nil: undefined },
  ),
  weightBps: fc.nat({ max: 10_000 }),
  // The reward is in a sealed record, and its JSON has no negative zero.
  reward: anyFinite.map((value) => value + 0),
};

const segmentsOf = (length: number) =>
  fc.tuple(fc.nat({ max: length - 1 }), fc.nat({ max: 2 }), fc.nat({ max: 2 })).map(([cut, a, b]) =>
    (cut === 0
      ? [[0, length, a]]
      : [
          [0, cut, a],
          [cut, length, b],
        ]
    ).map(([start, end, source]) => {
      const { id, digest } = SOURCES[source!]!.record;
      return { start: start!, end: end!, revision: { id, digest } };
    }),
  );

const tokenRow: fc.Arbitrary<TokenBatchRow> = fc.integer({ min: 1, max: 9 }).chain((length) => {
  const column = <T>(value: fc.Arbitrary<T>) => fc.array(value, { minLength: length, maxLength: length });
  return fc
    .record({
      ...facts,
      level: fc.constant("token" as const),
      segments: segmentsOf(length),
      ids: column(anyU32).map((values) => Uint32Array.from(values)),
      logprobs: column(anyF32).map((values) => Float32Array.from(values)),
      mask: column(fc.constantFrom(0, 1)).map((mask) => Uint8Array.from(mask.with(0, 1))),
      turns: column(anyU32).map((values) => Uint32Array.from(values)),
      rewards: column(anyF32).map((values) => Float32Array.from(values)),
      advantages: column(anyF32).map((values) => Float32Array.from(values)),
    })
    .map((row) => ({ ...row, samples: row.mask.reduce((sum, each) => sum + each, 0) }));
});

const candidate = fc.record({
  // numpy's fixed-width text cannot hold a NUL at the end. Another test covers the refusal.
  id: fc.string({ unit: "grapheme", maxLength: 8 }).filter((text) => !text.endsWith("\0")),
  probability: fc.option(fc.double({ min: 0, max: 1, noNaN: true }), { nil: null }),
  selectable: fc.boolean(),
});

const step: fc.Arbitrary<BatchStep> = fc
  .array(candidate, { minLength: 1, maxLength: 5 })
  .chain((candidates) =>
    fc.record({
      chosen: fc.nat({ max: candidates.length - 1 }),
      probability: fc.double({ min: 0, max: 1, noNaN: true }),
      reward: anyFinite,
      advantage: anyFinite,
      candidates: fc.constant(candidates),
    }),
  );

const stepRow: fc.Arbitrary<StepBatchRow> = fc.array(step, { minLength: 1, maxLength: 4 }).chain((steps) =>
  fc.record({
    ...facts,
    level: fc.constant("step" as const),
    samples: fc.constant(steps.length),
    segments: segmentsOf(steps.length),
    steps: fc.constant(steps),
  }),
);

const batchOf = <Row extends ExpectedRow>(level: Row["level"], row: fc.Arbitrary<Row>) =>
  fc.record({
    level: fc.constant(level),
    shardTokens: fc.integer({ min: 1, max: 20 }),
    rows: fc.array(row, { minLength: 1, maxLength: 12 }),
  });

export const anyBatch: fc.Arbitrary<RandomBatch> = fc.oneof(
  batchOf("token", tokenRow),
  batchOf("step", stepRow),
);

/** A batch of one level with `rows` rows, the same in every run. */
export function sampleBatch(level: "token" | "step", rows: number): RandomBatch {
  const one = level === "token" ? tokenRow : stepRow;
  const drawn = fc.sample(one as fc.Arbitrary<ExpectedRow>, { numRuns: rows, seed: 7 });
  return { level, shardTokens: 40, rows: drawn };
}

/** Seals the batch on a shelf. */
export function sealBatch({ level, shardTokens, rows }: RandomBatch): { shelf: Shelf; digest: Digest } {
  const shelf = new Shelf();
  const writer = new ShardWriter({ level, shardTokens, write: shelf.write });
  for (const row of rows) addRow(writer, row);
  writer.close();
  const target = makeRevision("policy-r9", { number: 9n });
  const lineage = sealLineage(target, SOURCES);
  const samples = rows.reduce((sum, row) => sum + row.samples, 0);
  const sums = { rewardSum: 0.5, rewardMean: 0.25, advantageSum: 0, advantageMean: 0 };
  const elsewhere = digestJson("test.elsewhere", level);
  const batch = seal(TrainerBatch, {
    manifest: digestJson("test.manifest", level),
    target: { id: target.record.id, digest: target.record.digest },
    selection: { family: parseId(FAMILY), level, ...(level === "token" ? { logprobKind: "sampling" } : {}) },
    seed: 18446744073709551615n,
    options: { advantage: "none", requireVerdict: false, shardTokens },
    lineage: lineage.digest,
    totals: { rows: rows.length, samples, ...sums },
    bySource: SOURCES.map(({ record: { id, digest } }, i) => ({
      revision: { id, digest },
      rows: rows.length,
      samples: i === 0 ? samples : 0,
      ...sums,
    })),
    groups: elsewhere,
    groupCount: 0,
    proofs: elsewhere,
    proofCount: 0,
    ledger: elsewhere,
    tokens: level === "token" ? rows.reduce((sum, row) => sum + lengthOf(row), 0) : 0,
    shards: writer.shards,
  });
  for (const record of [lineage, batch]) shelf.write(record);
  // A store returns bytes at any offset of a larger buffer.
  for (const [digest, { kind, bytes }] of shelf.blobs) {
    const wider = new Uint8Array(bytes.length + 3);
    wider.set(bytes, 3);
    shelf.blobs.set(digest, { kind, bytes: wider.subarray(3) });
  }
  return { shelf, digest: batch.digest };
}

export function lengthOf(row: ExpectedRow): number {
  return row.level === "token" ? row.ids.length : row.steps.length;
}

function addRow(writer: ShardWriter, row: ExpectedRow): void {
  const { content, stream, rolloutId, group, weightBps, samples, reward } = row;
  const segments = row.segments.map(({ start, end, revision }): [number, number, number] => [
    start,
    end,
    SOURCES.findIndex(({ record }) => record.id === (revision.id as Id)),
  ]);
  const known = { content, stream, rolloutId, weightBps, samples, reward, length: lengthOf(row), segments };
  const facts = group === undefined ? known : { ...known, group };
  if (row.level === "token") {
    const { ids, logprobs, mask, turns, rewards, advantages } = row;
    writer.add(facts, { ids, logprobs, mask, turns, rewards, advantages });
    return;
  }
  const { steps } = row;
  const candidates = steps.flatMap((each) => each.candidates);
  writer.add(facts, {
    chosen: steps.map((each) => each.chosen),
    probability: steps.map((each) => each.probability),
    rewards: steps.map((each) => each.reward),
    advantages: steps.map((each) => each.advantage),
    candidateCounts: steps.map((each) => each.candidates.length),
    candidateIds: candidates.map((one) => writer.candidateNumber(one.id)),
    candidateProbability: columnFrom(
      "f64",
      new Uint8Array(Float64Array.from(candidates, (one) => one.probability ?? Number.NaN).buffer),
    ),
    candidateSelectable: candidates.map((one) => (one.selectable ? 1 : 0)),
  });
}
