/** Cuts the batch that a window trains from: the train split of exactly the named rollouts, admitted by the usual
 *  rules.
 *  In: an open book, contents, a split, the router that collected. Out: the sealed batch, and the exclusions. The same
 *  rollouts give the same batch content, regardless of their recording time. */
import type { Digest } from "../../base/index.ts";
import { type LossLedger, PolicyRevision, type Sealed, type TrainerBatch } from "../../contract/index.ts";
import { readSealed } from "../../keep/admit/index.ts";
import type { SplitRule } from "../../learn/index.ts";
import { cutFrom } from "../batches/index.ts";
import type { OpenBook } from "../open/index.ts";
import { admittedRollouts, chooseArtifacts, type FreshnessChoice } from "../rollouts/index.ts";
import { requireTraining, splitAdmitted } from "../train/index.ts";

interface CutWindowRequest {
  readonly contents: ReadonlySet<Digest>;
  readonly family: string;
  /** Record of the router that collected last. */
  readonly target: Digest;
  readonly freshness: FreshnessChoice;
  readonly rule: SplitRule;
  readonly seed: bigint;
}

interface WindowBatch {
  readonly batch: Sealed<TrainerBatch>;
  readonly considered: number;
  /** Admitted rollouts with more than one decision. */
  readonly chains: number;
  readonly excluded: LossLedger["reasons"];
}

export async function cutWindow(book: OpenBook, request: CutWindowRequest): Promise<WindowBatch> {
  const { contents, family, target, freshness, rule, seed } = request;
  const admitted = await admittedRollouts(book, {
    ...{ contents, family, target, freshness, level: "step" },
    ...{ unlabelled: "exclude", propensity: "choice" },
  });
  requireTraining(admitted, splitAdmitted(admitted, rule), { rule, request: {} });
  const { ledger, sources } = admitted;
  const index = await book.index();
  const own = await readSealed((digest) => book.store.get(digest), PolicyRevision, target);
  const { unit, salt, shares } = rule;
  const batch = await cutFrom(book, {
    ...{ index, seed, target, artifacts: chooseArtifacts(index, { contents }) },
    selection: { level: "step", family: admitted.family },
    options: {
      ...{ advantage: "none", propensity: "choice", distinct: "before-split", requireVerdict: false },
      ...(freshness === "none" ? {} : { freshness }),
      split: { unit, salt, shares: [...shares] as [number, number, number], part: "train" },
    },
    feedback: () => false,
    revisions: [own, ...sources.filter(({ digest }) => digest !== target)],
  });
  const chains = admitted.rows.filter(({ samples }) => samples > 1).length;
  return { batch, chains, considered: ledger.considered.artifacts, excluded: ledger.reasons() };
}
