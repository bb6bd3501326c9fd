/** Sums over decisions for bandits, sealed in increments. The state of a bandit is the sum of increments that share no
 *  decision. Two processes that count the same decisions write the same bytes; overlapping decisions are counted
 *  once. */
import * as z from "zod";
import {
  columnRef,
  columnReference,
  defineRecord,
  digest,
  finite,
  id,
  jsonObject,
  type RecordOf,
  refuse,
  text,
} from "../codec/index.ts";

export const BanditIncrement = defineRecord({
  kind: "rollbook.bandit-increment.v1",
  summary:
    "Sufficient statistics of a set of decisions, each counted once; sums of them are a bandit's state.",
  shape: {
    /** Filter for the decisions of the book that belong to the state: family, session, dates, split. */
    filters: z.record(id as z.ZodType<string, string>, text(512)),
    /** Feature spec of the linear sums; without it the increment holds only counts and rewards. */
    features: z.optional(jsonObject),
    /** Candidates, sorted by name. Columns hold one value or block per candidate. */
    arms: z.array(text(512)).min(1).max(100_000),
    /** Ids of the decisions, and their units (tasks, sessions): sorted, one per line of UTF-8. */
    decisions: z.strictObject({
      count: z.number().int().min(1),
      ids: columnRef("u8"),
      units: columnRef("u8"),
    }),
    rewards: z.strictObject({ low: finite, high: finite }),
    columns: z.strictObject({
      counts: columnRef("f64"),
      sums: columnRef("f64"),
      /** Σxxᵀ: the lower triangle, row by row. */
      gram: z.optional(columnRef("f64")),
      /** Σr·x. */
      response: z.optional(columnRef("f64")),
    }),
    /** For a snapshot: the increments whose decisions it covers. */
    merges: z.array(digest).max(100_000),
    /** Trainer batches whose rows the increment sums. */
    batches: z.optional(z.array(digest).min(1).max(100_000)),
  },
  references: ({ columns, decisions, merges, batches = [] }) => [
    ...batches.map((each, i) => ({
      digest: each,
      kind: "rollbook.trainer-batch.v1",
      field: `batches[${i}]`,
    })),
    columnReference(decisions.ids, "decisions.ids"),
    columnReference(decisions.units, "decisions.units"),
    ...Object.entries(columns).flatMap(([name, column]) =>
      column === undefined ? [] : [columnReference(column, `columns.${name}`)],
    ),
    // External, because a snapshot is complete without the increments that it covers; they may be gone.
    ...merges.map((each, i) => ({
      digest: each,
      kind: "rollbook.bandit-increment.v1",
      field: `merges[${i}]`,
      external: true,
      what: "bandit increment",
    })),
  ],
  check({ features, arms, rewards, columns }) {
    const bad = (field: string, message: string) => refuse("bad-record", { field }, `${field}: ${message}`);
    const { counts, sums, gram, response } = columns;
    if (new Set(arms).size !== arms.length) throw bad("arms", "a candidate appears twice.");
    if (counts.length !== arms.length || sums.length !== arms.length)
      throw bad("columns.counts", `needs one count and one sum for each of ${arms.length} candidates.`);
    if (
      (features === undefined) !== (gram === undefined) ||
      (gram === undefined) !== (response === undefined)
    )
      throw bad("columns.gram", "linear sums have features, gram and response; counts have none of them.");
    const size = (response?.length ?? 0) / arms.length;
    if (!Number.isInteger(size) || (gram?.length ?? 0) !== (arms.length * size * (size + 1)) / 2)
      throw bad("columns.gram", "does not fit the response: give d(d+1)/2 and d values for each candidate.");
    if (rewards.low > rewards.high) throw bad("rewards", "the lowest is above the highest.");
  },
});
export type BanditIncrement = RecordOf<typeof BanditIncrement>;
