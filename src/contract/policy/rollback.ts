/** Withdrawal of a router because its outcomes were worse than those of the previous router, with the evidence. */
import * as z from "zod";
import {
  columnRef,
  columnReference,
  count,
  defineRecord,
  digest,
  finite,
  id,
  probability,
  type RecordOf,
  refuse,
  text,
  timeMs,
} from "../codec/index.ts";
import { revisionKey } from "./policy-revision.ts";

/** A router by its digest, with its policy. Without a policy, the static table decides. */
const servedRouter = z.strictObject({ digest, policy: z.optional(revisionKey) });

export const Rollback = defineRecord({
  kind: "rollbook.rollback.v1",
  summary: "A served router taken back for the one before it, with the paired outcomes that showed harm.",
  shape: {
    family: id,
    /** `from` was withdrawn; `to` serves instead. */
    from: servedRouter,
    to: servedRouter,
    /** Gate verdict that had released `from`. */
    verdict: z.optional(digest),
    evidence: z.strictObject({
      method: z.literal("confidence-sequence"),
      /** Error level of the whole sequence: the probability of a false claim of harm is at most alpha. */
      alpha: probability,
      margin: finite,
      range: z.strictObject({ low: finite, high: finite }),
      /** Source of the previous router's outcomes: the record before the release, or the share of calls held back. */
      comparedWith: z.enum(["record", "holdback"]),
      /** Name of the late feedback that gave the outcomes; absent: recorded rewards. */
      feedback: z.optional(id),
      pairs: z.number().int().min(1),
      /** Mean outcomes of both routers, the difference new − previous, and its upper bound. */
      fresh: finite,
      before: finite,
      difference: finite,
      upper: finite,
      /** Number of outcomes outside the range, each replaced by the nearest end of the range. */
      clipped: count,
      /** The differences in the order of counting, and for each a line of UTF-8 with its two decisions. */
      terms: columnRef("f64"),
      decisions: columnRef("u8"),
      /** Manifest of the rollouts that the outcomes were admitted from. */
      manifest: z.optional(digest),
    }),
    by: text(512),
    atMs: timeMs,
  },
  references: ({ verdict, evidence: { terms, decisions, manifest } }) => [
    ...(verdict === undefined
      ? []
      : [
          {
            digest: verdict,
            kind: "rollbook.gate-verdict.v1",
            field: "verdict",
            external: true,
            what: "gate verdict",
          },
        ]),
    columnReference(terms, "evidence.terms"),
    columnReference(decisions, "evidence.decisions"),
    ...(manifest === undefined
      ? []
      : [{ digest: manifest, kind: "rollbook.manifest.v1", field: "evidence.manifest" }]),
  ],
  check({ from, to, evidence: { terms, pairs, upper, margin } }) {
    const bad = (field: string, message: string) => refuse("bad-record", { field }, `${field}: ${message}`);
    if (from.digest === to.digest) throw bad("to", "a router cannot be taken back for itself.");
    if (terms.length !== pairs)
      throw bad("evidence.terms", `holds ${terms.length} differences, the evidence counts ${pairs} pairs.`);
    if (!(upper < -margin))
      throw bad("evidence.upper", `${upper} is not below ${-margin}: the evidence does not show harm.`);
  },
});
export type Rollback = RecordOf<typeof Rollback>;
