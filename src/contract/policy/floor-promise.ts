/** A confidence floor and its guarantee: the expected loss when a policy departs from its table is at most alpha. */
import * as z from "zod";
import {
  count,
  defineRecord,
  digest,
  finite,
  id,
  probability,
  type RecordOf,
  refuse,
  timeMs,
} from "../codec/index.ts";
import { revisionKey } from "./policy-revision.ts";
import { splitRule } from "./split-rule.ts";

export const FloorPromise = defineRecord({
  kind: "rollbook.floor-promise.v1",
  summary: "A policy's confidence floor, calibrated by conformal risk control, with the risk it promises.",
  shape: {
    policy: revisionKey,
    table: digest,
    /** Null: no floor keeps the guarantee, and the static table decides everything. */
    floor: z.nullable(probability),
    alpha: probability,
    /** n, B, R̂ and the corrected bound that was compared with alpha. */
    units: count,
    largestLoss: finite,
    empiricalRisk: finite,
    bound: finite,
    coverage: probability,
    feedback: z.enum(["bandit", "full"]),
    measure: id,
    range: z.strictObject({ low: finite, high: finite }),
    propensityFloor: probability,
    /** Digest of the calibration rows. */
    data: digest,
    split: splitRule,
    atMs: timeMs,
  },
  references: ({ policy }) => [
    { digest: policy.digest, kind: "", field: "policy.digest", external: true, what: `policy ${policy.id}` },
  ],
  check({ floor, bound, alpha }) {
    if (floor !== null && bound > alpha)
      throw refuse(
        "bad-record",
        { field: "bound", bound, alpha },
        `a floor whose risk bound ${bound} exceeds alpha ${alpha} promises nothing: floor must be null.`,
      );
  },
});
export type FloorPromise = RecordOf<typeof FloorPromise>;
