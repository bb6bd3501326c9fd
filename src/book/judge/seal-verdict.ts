/** A gate's answer as the record that is kept: who was judged, by which rows and rule, with which bounds, and why. */
import { parseId } from "../../base/index.ts";
import { GateVerdict, type Sealed, seal } from "../../contract/index.ts";
import { bestPassing, type GatedCandidate, type GateRule, routerOf } from "../../judge/index.ts";
import { digestRouter } from "../../policy/index.ts";
import type { JudgeRows } from "./judge-rows.ts";
import type { Fielded, LoadedPolicy } from "./load-policy.ts";

export interface Baseline {
  readonly kind: GateVerdict["baseline"]["kind"];
  /** Absent: the policy behind the log. */
  readonly field?: Fielded;
  readonly loaded?: LoadedPolicy;
}

export function sealVerdict(options: {
  candidates: readonly LoadedPolicy[];
  fields: readonly Fielded[];
  gated: readonly GatedCandidate[];
  rule: GateRule;
  judged: JudgeRows;
  baseline: Baseline;
  seed: bigint;
  atMs: number;
  /** Of rows from a book. */
  origin?: Pick<GateVerdict["data"], "manifest" | "ledger"> | undefined;
}): Sealed<GateVerdict> {
  const { candidates, fields, gated, rule, judged, baseline, seed, atMs } = options;
  const revisionOf = ({ checkpoint: { revision } }: LoadedPolicy) => ({
    id: revision.record.id,
    digest: revision.record.digest,
  });
  const best = bestPassing(gated);
  const { field, loaded, kind } = baseline;
  const { rule: split, rows, digest, unlabelled, leftOut } = judged;
  return seal(GateVerdict, {
    outcome: best === undefined ? "refuse" : "pass",
    ...(best === undefined ? {} : { passed: revisionOf(candidates[best]!) }),
    candidates: gated.map((each, i) => ({
      revision: revisionOf(candidates[i]!),
      router: routerFacts(fields[i]!),
      ...each,
      reasons: [...each.reasons],
      checks: each.checks.map((check) => ({ ...check, measure: parseId(check.measure) })),
    })),
    baseline: {
      kind,
      ...(field === undefined
        ? {}
        : { digest: loaded === undefined ? field.table.digest : digestRouter(routerOf(field)) }),
      ...(loaded === undefined ? {} : { revision: revisionOf(loaded) }),
    },
    rule: { ...rule, correction: "bonferroni", perCandidate: rule.alpha / rule.tried },
    data: {
      digest,
      rows: rows.length,
      units: new Set(rows.map((row) => row.unit)).size,
      unlabelled,
      leftOut,
      ...options.origin,
    },
    split: { unit: split.unit, salt: split.salt, shares: [...split.shares] },
    seed,
    atMs,
  } as Omit<GateVerdict, "schema">);
}

function routerFacts(field: Fielded) {
  return {
    digest: digestRouter(routerOf(field)),
    table: field.table.digest,
    floor: field.floor,
    exploration: field.exploration,
    ...(field.promise === undefined ? {} : { promise: field.promise.digest }),
  };
}
