/** Manages the policies that a window trains and judges: one for each learner of the configuration, all from the same
 *  batch.
 *  In: a configuration, a window. Out: their names and folders, and the result of the gate. With a single learner, the
 *  revision has the name of the window, without a suffix. */
import { join } from "node:path";
import { type Digest, given, isRollbookError, parseId } from "../base/index.ts";
import {
  evaluateCheckpoint,
  type GateRequest,
  gateCheckpoints,
  type JudgeRequest,
} from "../book/judge/index.ts";
import type { BookOnDisk } from "../book/open/index.ts";
import type { GateVerdict, LoopTransition, RevisionKey, Sealed } from "../contract/index.ts";
import type { LoopConfig } from "./config.ts";
import type { LoopWindow } from "./fold.ts";
import type { LearnerConfig } from "./learner.ts";

interface WindowCandidate {
  readonly learner: LearnerConfig;
  /** Id of the revision. */
  readonly id: string;
  /** Folder of the checkpoint. */
  readonly folder: string;
}

type JudgedStep = Extract<LoopTransition["step"], { state: "judged" }>;

/** `folder` is the folder of the run. */
export function windowCandidates(
  config: LoopConfig,
  window: number,
  folder: string,
): readonly WindowCandidate[] {
  const { learners, run } = config;
  return learners.map((learner) => {
    const suffix = learners.length === 1 ? "" : `-${learner.kind}`;
    return { learner, id: `${run}-w${window}${suffix}`, folder: join(folder, `window-${window}${suffix}`) };
  });
}

/** Revisions that a window trained, in the order of the learners, each with the digest of its record. */
export function revisionsOf(
  window: LoopWindow,
): { readonly revision: RevisionKey; readonly record: Digest; readonly learner?: string }[] {
  const trained = window.at("trained");
  if (trained === undefined) return [];
  const { step, envelope } = trained;
  if (step.candidates === undefined) return [{ revision: step.revision, record: envelope.revision! }];
  return step.candidates.map(({ learner, revision }, i) => ({
    ...{ learner, revision, record: envelope.candidates![i]! },
  }));
}

interface JudgedCandidates {
  readonly step: JudgedStep;
  readonly verdict?: Sealed<GateVerdict>;
}

/** Judges the policies. Rows that cannot judge lead to a refusal, as in a gate. A rule that does not fit the rows also
 *  does: a run keeps its rule, and would stop at every resume. All other errors stop the run. */
export async function judgeCandidates(
  book: BookOnDisk,
  candidates: readonly WindowCandidate[],
  { judge, gate }: { judge: JudgeRequest; gate: Omit<GateRequest, keyof JudgeRequest | "candidates"> },
): Promise<JudgedCandidates> {
  try {
    const folders = candidates.map(({ folder }) => folder);
    const estimates: JudgedStep["estimate"][] = [];
    for (const checkpoint of folders) estimates.push(await estimateOf(book, { ...judge, checkpoint }));
    const { verdict } = await gateCheckpoints(book, { ...judge, ...gate, candidates: folders });
    return { step: stepOf(candidates, verdict.record, estimates), verdict };
  } catch (error) {
    return { step: { state: "judged", outcome: "refuse", reasons: [reasonOf(error)] } };
  }
}

/** Error codes of rows that cannot judge: none are left, too few are left, or the policy does not know their
 *  candidates. Later windows may have other rows. */
const UNFIT_ROWS: readonly string[] = ["empty-split", "too-few-units", "unseen-candidate"];

/** Error codes of a rule that does not fit the rows: no bounds, ranges that the rows violate, ranges that are not
 *  stated, a margin as wide as the rewards, or a margin on costs that the rows do not have. */
const MISFITS: readonly string[] = [
  ...["bad-rule", "range-broken", "range-unknown", "margin-too-wide", "no-cost"],
];

function reasonOf(error: unknown): string {
  if (!isRollbookError(error)) throw error;
  if (UNFIT_ROWS.includes(error.code)) return error.message;
  if (MISFITS.includes(error.code))
    return `${error.message} A run keeps its configuration: start another run, under another name.`;
  throw error;
}

async function estimateOf(
  book: BookOnDisk,
  request: Parameters<typeof evaluateCheckpoint>[1],
): Promise<JudgedStep["estimate"]> {
  const { evaluation } = await evaluateCheckpoint(book, request);
  const value = evaluation.contenders[0]!.values.reward;
  const interval = value?.intervals[0];
  if (value === undefined || interval === undefined) return undefined;
  return {
    ...{ value: value.estimate.value, low: interval.low, high: interval.high },
    level: evaluation.level,
  };
}

/** Step without the verdict's digest, which the stage adds. */
function stepOf(
  candidates: readonly WindowCandidate[],
  { candidates: judged, outcome, passed, rule }: GateVerdict,
  estimates: readonly JudgedStep["estimate"][],
): JudgedStep {
  const best = Math.max(
    0,
    judged.findIndex(({ revision }) => revision.digest === passed?.digest),
  );
  const estimate = estimates[best];
  const facts = { state: "judged", outcome, ...given({ estimate, discount: rule.discount }) } as const;
  if (candidates.length === 1) return { ...facts, reasons: judged[0]!.reasons };
  const named = judged.map((each, i) => ({ ...each, learner: candidates[i]!.learner.kind }));
  return {
    ...facts,
    reasons:
      outcome === "pass"
        ? []
        : named.flatMap(({ learner, reasons }) => reasons.map((reason) => `${learner}: ${reason}`)),
    candidates: named.map(({ learner, outcome: own, reasons }, i) => ({
      ...{ learner: parseId(learner), outcome: own, reasons },
      ...(estimates[i] === undefined ? {} : { estimate: estimates[i] }),
    })),
    ...(passed === undefined ? {} : { passed }),
  };
}
