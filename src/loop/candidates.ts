/** The policies that a window trains and judges: one for each learner of the configuration, all from the same batch.
 *  In: a configuration, a window. Out: their names and folders; what the gate finds of them. A single learner has no name
 *  of its own: its revision is called after the window. */
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
  /** Of the revision. */
  readonly id: string;
  /** Of the checkpoint. */
  readonly folder: string;
}

type JudgedStep = Extract<LoopTransition["step"], { state: "judged" }>;

/** `folder`: of the run. */
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

/** The revisions that a window trained, in the order of the learners, each with the digest of its record. */
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

/** Rows that cannot judge refuse the policies, as a gate does, and so does a rule that does not fit the rows: a run keeps its
 *  rule, and would stop at every resume. Everything else stops the run. */
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

/** Codes of a rule that does not fit the rows: of no bounds, and of ranges that the rows break or that are not stated. */
const MISFITS: readonly string[] = ["bad-rule", "range-broken", "range-unknown"];

function reasonOf(error: unknown): string {
  if (isRollbookError(error, "empty-split") || isRollbookError(error, "too-few-units")) return error.message;
  if (isRollbookError(error) && MISFITS.includes(error.code))
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

/** Without the verdict's digest, which the stage adds. */
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
