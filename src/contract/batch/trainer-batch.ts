/** A trainer batch: rows cut from a sealed manifest, in an order fixed by the seed, with lineage and ledger. The batch
 *  record is small; rows and their columns are in shards, so a batch of any size is read in bounded memory. */
import * as z from "zod";
import { type Digest, digestJson } from "../../base/index.ts";
import {
  columnRef,
  columnReference,
  count,
  defineRecord,
  digest,
  finite,
  id,
  type RecordOf,
  type Reference,
  refuse,
  text,
  u64,
} from "../codec/index.ts";
import { revisionKey, splitPart, splitRule } from "../policy/index.ts";
import { logprobKind, proof } from "../rollout/index.ts";
import { driftBudgets } from "./ledger.ts";

const advantageMethod = z.enum(["mean-std", "leave-one-out", "claimed", "none"]);
export type AdvantageMethod = z.output<typeof advantageMethod>;

/** Rewards are counted per row, advantages per sample. */
const aggregate = z.strictObject({
  rows: count,
  samples: count,
  rewardSum: finite,
  rewardMean: finite,
  advantageSum: finite,
  advantageMean: finite,
});

export const BatchGroups = defineRecord({
  kind: "rollbook.batch-groups.v1",
  summary:
    "Reward and advantage aggregates by group. The mean that advantages subtract counts each rollout once.",
  shape: {
    groups: z
      .array(
        z.strictObject({ group: id, rollouts: count, baseline: finite, spread: finite, ...aggregate.shape }),
      )
      .max(10_000_000),
  },
});

export const BatchProofs = defineRecord({
  kind: "rollbook.batch-proofs.v1",
  summary: "The proofs behind a batch, unique and sorted by digest.",
  shape: { proofs: z.array(proof).max(10_000_000) },
  check({ proofs }) {
    for (let i = 1; i < proofs.length; i++) {
      if (proofs[i - 1]!.digest >= proofs[i]!.digest)
        throw refuse("bad-record", { field: `proofs[${i}]` }, "proofs are not sorted by digest and unique.");
    }
  },
});

/** One stream of one rollout. `start` and `length` count tokens (or steps) within the shard. */
const row = z.strictObject({
  content: digest,
  stream: count,
  rolloutId: id,
  group: z.optional(id),
  weightBps: count,
  start: count,
  length: count,
  samples: count,
  reward: finite,
  /** [first, end) within the row, and the index into the batch's sources. */
  segments: z.array(z.tuple([count, count, count])).min(1),
});
export type BatchRow = z.output<typeof row>;

const tokenColumns = z.strictObject({
  ids: columnRef("u32"),
  logprobs: columnRef("f32"),
  mask: columnRef("u8"),
  turns: columnRef("u32"),
  rewards: columnRef("f32"),
  advantages: columnRef("f32"),
});

const stepColumns = z.strictObject({
  chosen: columnRef("u32"),
  probability: columnRef("f64"),
  rewards: columnRef("f64"),
  advantages: columnRef("f64"),
  /** Ragged: `candidateCounts` per step, then one value per candidate. NaN marks a probability that was not logged. */
  candidateCounts: columnRef("u32"),
  candidateIds: columnRef("u32"),
  candidateProbability: columnRef("f64"),
  candidateSelectable: columnRef("u8"),
});

const RAGGED = new Set(["candidateIds", "candidateProbability", "candidateSelectable"]);

export const BatchShard = defineRecord({
  kind: "rollbook.batch-shard.v1",
  summary: "Consecutive rows of a batch with their columns.",
  shape: {
    rows: z.array(row).min(1).max(1_000_000),
    data: z.discriminatedUnion("level", [
      z.strictObject({ level: z.literal("token"), columns: tokenColumns }),
      z.strictObject({ level: z.literal("step"), columns: stepColumns, candidates: z.array(text(512)) }),
    ]),
  },
  references: (shard) =>
    Object.entries(shard.data.columns).map(
      ([name, column]): Reference => columnReference(column, `data.columns.${name}`),
    ),
  check(shard) {
    let at = 0;
    for (const [i, each] of shard.rows.entries()) {
      if (each.start !== at)
        throw refuse(
          "bad-record",
          { field: `rows[${i}].start` },
          `rows[${i}] starts at ${each.start}, the row before ends at ${at}.`,
        );
      at += each.length;
      checkRow(each, `rows[${i}]`);
    }
    const { data } = shard;
    const candidates = data.level === "step" ? data.columns.candidateIds.length : 0;
    for (const [name, column] of Object.entries<{ length: number }>(data.columns)) {
      const expected = RAGGED.has(name) ? candidates : at;
      if (column.length !== expected) {
        throw refuse(
          "length-mismatch",
          { field: `data.columns.${name}`, expected, actual: column.length },
          `data.columns.${name} has ${column.length} values, not ${expected}.`,
        );
      }
    }
  },
});
export type BatchShard = RecordOf<typeof BatchShard>;

function checkRow({ length, samples, segments }: BatchRow, field: string): void {
  let end = 0;
  for (const [from, to] of segments) {
    if (from < end || to <= from || to > length)
      throw refuse(
        "bad-record",
        { field },
        `${field}: a segment overlaps another, is empty, or leaves the row.`,
      );
    end = to;
  }
  if (samples === 0 || samples > length)
    throw refuse("bad-record", { field }, `${field} has ${samples} samples in ${length} places.`);
}

const selection = z.strictObject({
  family: id,
  level: z.enum(["token", "step"]),
  logprobKind: z.optional(logprobKind),
  /** Present if requested: only token streams of this tokenizer are rows. */
  tokenizer: z.optional(digest),
});

export const TrainerBatch = defineRecord({
  kind: "rollbook.trainer-batch.v1",
  summary: "A deterministic trainer batch: a function of manifest, target, selection, options and seed.",
  shape: {
    manifest: digest,
    target: revisionKey,
    selection,
    seed: u64,
    options: z.strictObject({
      advantage: advantageMethod,
      /** Present if a rollout id had two contents: only one content counts. `before-split`: that content is chosen
       *  before the split and before rows of other batches are left out. No other content can then replace it. */
      distinct: z.optional(z.union([z.literal(true), z.literal("before-split")])),
      /** Rows of these batches are left out, so that an incremental learner takes each row once. */
      except: z.optional(z.array(digest).min(1).max(10_000)),
      feedback: z.optional(id),
      /** Present if the budgets excluded something: budgets that exclude nothing do not change the batch. */
      freshness: z.optional(driftBudgets),
      maxLength: z.optional(count),
      /** Present if a row has steps that log only the probability of the choice. */
      propensity: z.optional(z.literal("choice")),
      requireVerdict: z.boolean(),
      shardTokens: count,
      /** Part of the rollouts that the batch is cut from. The other parts are held out. */
      split: z.optional(z.strictObject({ ...splitRule.shape, part: splitPart })),
    }),
    lineage: digest,
    totals: aggregate,
    bySource: z.array(z.strictObject({ revision: revisionKey, ...aggregate.shape })).min(1),
    groups: digest,
    groupCount: count,
    proofs: digest,
    proofCount: count,
    ledger: digest,
    tokens: count,
    shards: z.array(z.strictObject({ digest, rows: count, samples: count })).min(1),
  },
  references: (batch) => [
    { digest: batch.manifest, kind: "rollbook.manifest.v1", field: "manifest" },
    { digest: batch.lineage, kind: "rollbook.policy-revision-lineage.v1", field: "lineage" },
    { digest: batch.groups, kind: BatchGroups.kind, field: "groups" },
    { digest: batch.proofs, kind: BatchProofs.kind, field: "proofs" },
    { digest: batch.ledger, kind: "rollbook.loss-ledger.v1", field: "ledger" },
    ...batch.shards.map((shard, i) => ({
      digest: shard.digest,
      kind: BatchShard.kind,
      field: `shards[${i}]`,
    })),
    ...(batch.options.except ?? []).map((each, i) => ({
      digest: each,
      kind: "rollbook.trainer-batch.v1",
      field: `options.except[${i}]`,
    })),
  ],
  check(batch) {
    for (const name of ["rows", "samples"] as const) {
      const sum = batch.shards.reduce((total, shard) => total + shard[name], 0);
      if (sum !== batch.totals[name])
        throw refuse(
          "bad-record",
          { field: name },
          `the shards hold ${sum} ${name}, the totals say ${batch.totals[name]}.`,
        );
    }
    const made = batch.bySource.reduce((total, source) => total + source.samples, 0);
    if (made !== batch.totals.samples)
      throw refuse(
        "bad-record",
        { field: "bySource" },
        `the sources made ${made} samples, the totals say ${batch.totals.samples}.`,
      );
  },
});
export type TrainerBatch = RecordOf<typeof TrainerBatch>;
export type Selection = TrainerBatch["selection"];
export type BatchOptions = TrainerBatch["options"];

/** Digest of the parts of a batch that a trainer reads: rows, columns, target, and how the batch was cut. Manifest,
 *  lineage, ledger and proofs are left out because they bind envelopes, which hold times. Two recordings of the same
 *  contents differ only there. */
export function batchContent(batch: TrainerBatch): Digest {
  const { target, selection, seed, options, totals, bySource, groups, tokens, shards } = batch;
  return digestJson("rollbook.batch-content.v1", {
    ...{ target, selection, options, totals, bySource, groups, tokens, shards },
    seed: String(seed),
  });
}
