/** The decision of a gate about candidate policies, with everything needed to repeat the decision. */
import * as z from "zod";
import {
  count,
  defineRecord,
  digest,
  finite,
  id,
  jsonObject,
  probability,
  type RecordOf,
  refuse,
  text,
  timeMs,
  u64,
} from "../codec/index.ts";
import { revisionKey } from "./policy-revision.ts";
import { splitRule } from "./split-rule.ts";

const outcome = z.enum(["pass", "refuse"]);

/** One measure of one candidate: the paired difference to the baseline, its bound, and its threshold. All fields come
 *  from one estimate, which depends on the rule's method. `student-t`: DR (chain DR for chains, the mean if outcomes
 *  are known). Other methods: IPS of the outcome minus the middle of its range. */
const check = z.strictObject({
  measure: id,
  candidate: finite,
  baseline: finite,
  /** Candidate minus baseline. */
  difference: finite,
  standardError: z.nullable(finite),
  /** Lower bound of the difference; for a cost, the upper bound. Null if infinite. */
  bound: z.nullable(finite),
  epsilon: finite,
  clears: z.boolean(),
});

const judged = z.strictObject({
  revision: revisionKey,
  router: z.strictObject({
    digest,
    table: digest,
    floor: z.nullable(probability),
    exploration: probability,
    /** The router's constraints on price, latency and context length. */
    constraints: z.optional(jsonObject),
    promise: z.optional(digest),
  }),
  outcome,
  reasons: z.array(text()).max(64),
  checks: z.array(check).max(8),
  support: z.strictObject({
    effectiveSize: finite,
    largestWeight: finite,
    meanWeight: finite,
    unsupportedMass: finite,
  }),
  /** Share of rows where the policy decides instead of the table. */
  live: probability,
});

export const GateVerdict = defineRecord({
  kind: "rollbook.gate-verdict.v1",
  summary: "A gate's decision about candidate policies: data, split, rule, estimates, bounds and reasons.",
  shape: {
    outcome,
    /** The candidate that passed and is released. */
    passed: z.optional(revisionKey),
    candidates: z.array(judged).min(1).max(1000),
    baseline: z.strictObject({
      kind: z.enum(["static", "behaviour", "policy"]),
      /** Digest of the table, or of the router around the policy. Absent for the behaviour policy of the log. */
      digest: z.optional(digest),
      revision: z.optional(revisionKey),
    }),
    rule: z.strictObject({
      method: z.enum(["student-t", "empirical-bernstein", "confidence-sequence"]),
      alpha: probability,
      /** Number of candidates tried, including candidates that are not in this record. */
      tried: count,
      correction: z.literal("bonferroni"),
      /** alpha / tried: the one-sided error of each bound. */
      perCandidate: probability,
      epsilonQuality: finite,
      /** Null: only quality was judged. */
      epsilonCost: z.nullable(finite),
      /** Present if the total reward was judged instead of quality and cost separately. epsilonQuality is then its
       *  margin. */
      total: z.optional(
        z.strictObject({
          /** The total is quality − costWeight × cost. Absent: the reward as logged. */
          costWeight: z.optional(finite),
        }),
      ),
      propensityFloor: z.optional(probability),
      ranges: z.optional(z.record(z.string(), z.strictObject({ low: finite, high: finite }))),
      /** Present if whole chains were judged: the weight of a reward one decision later. Absent for single
       *  decisions. */
      discount: z.optional(probability),
    }),
    data: z.strictObject({
      /** Digest of the judged rows in canonical form. */
      digest,
      rows: count,
      units: count,
      unlabelled: count,
      leftOut: z.strictObject({ train: count, calibration: count }),
      /** For rows from a book: the manifest they were admitted from, and the ledger of excluded rows. */
      manifest: z.optional(digest),
      ledger: z.optional(digest),
    }),
    split: splitRule,
    seed: u64,
    atMs: timeMs,
  },
  references: ({ candidates, data: { manifest, ledger } }) => [
    ...candidates.map(({ revision }, i) => ({
      digest: revision.digest,
      kind: "",
      field: `candidates[${i}].revision.digest`,
      external: true,
      what: `policy ${revision.id}`,
    })),
    ...(manifest === undefined
      ? []
      : [{ digest: manifest, kind: "rollbook.manifest.v1", field: "data.manifest" }]),
    ...(ledger === undefined
      ? []
      : [{ digest: ledger, kind: "rollbook.loss-ledger.v1", field: "data.ledger" }]),
  ],
  check({ outcome: all, passed, candidates }) {
    const through = candidates.filter((each) => each.outcome === "pass");
    const bad = (message: string) => refuse("bad-record", { field: "outcome", outcome: all }, message);
    if ((all === "pass") !== through.length > 0)
      throw bad("the gate passes if and only if a candidate does.");
    if ((passed === undefined) !== (all === "refuse"))
      throw bad("a gate that passes names the candidate it releases, and only then.");
    if (passed !== undefined && !through.some(({ revision }) => revision.digest === passed.digest))
      throw bad(`${passed.id} was released, but did not pass.`);
    for (const { outcome: one, checks, reasons } of candidates)
      if ((one === "pass") !== (reasons.length === 0 && checks.length > 0 && checks.every((c) => c.clears)))
        throw bad("a candidate passes if every check clears and no reason stands against it.");
  },
});
export type GateVerdict = RecordOf<typeof GateVerdict>;
