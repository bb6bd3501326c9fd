/** Builds the gate's verdict record: the judged policies, the rows and rule, the bounds, and the reasons. */
import { parseId } from "../../base/index.ts";
import { GateVerdict, type Sealed, seal } from "../../contract/index.ts";
import { bestPassing, type GatedCandidate, type GateRule, routerOf } from "../../judge/index.ts";
import { digestRouter } from "../../policy/index.ts";
import type { JudgeRows } from "./judge-rows.ts";
import type { LoadedPolicy, LoadedSetup } from "./load-policy.ts";

export interface Baseline {
  readonly kind: GateVerdict["baseline"]["kind"];
  /** Absent if the baseline is the policy behind the log. */
  readonly setup?: LoadedSetup;
  readonly loaded?: LoadedPolicy;
}

export function sealVerdict(options: {
  candidates: readonly LoadedPolicy[];
  setups: readonly LoadedSetup[];
  gated: readonly GatedCandidate[];
  rule: GateRule;
  judged: JudgeRows;
  baseline: Baseline;
  seed: bigint;
  atMs: number;
  /** Set only if the rows come from a book. */
  origin?: Pick<GateVerdict["data"], "manifest" | "ledger"> | undefined;
}): Sealed<GateVerdict> {
  const { candidates, setups, gated, rule, judged, baseline, seed, atMs } = options;
  const revisionOf = ({ checkpoint: { revision } }: LoadedPolicy) => ({
    id: revision.record.id,
    digest: revision.record.digest,
  });
  const best = bestPassing(gated);
  const { setup, loaded, kind } = baseline;
  const { rule: split, rows, digest, unlabelled, leftOut } = judged;
  return seal(GateVerdict, {
    outcome: best === undefined ? "refuse" : "pass",
    ...(best === undefined ? {} : { passed: revisionOf(candidates[best]!) }),
    candidates: gated.map(({ changed: _, ...each }, i) => ({
      revision: revisionOf(candidates[i]!),
      router: routerFacts(setups[i]!),
      ...each,
      reasons: [...each.reasons],
      checks: each.checks.map((check) => ({ ...check, measure: parseId(check.measure) })),
    })),
    baseline: {
      kind,
      ...(setup === undefined
        ? {}
        : { digest: loaded === undefined ? setup.table.digest : digestRouter(routerOf(setup)) }),
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

function routerFacts(setup: LoadedSetup) {
  return {
    digest: digestRouter(routerOf(setup)),
    table: setup.table.digest,
    floor: setup.floor,
    exploration: setup.exploration,
    ...(setup.constraints === undefined ? {} : { constraints: { ...setup.constraints } }),
    ...(setup.promise === undefined ? {} : { promise: setup.promise.digest }),
  };
}
