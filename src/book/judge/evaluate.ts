/** Compares a learned policy with its baselines on rows it has not seen.
 *  In: a source of decisions, a checkpoint. Out: the evaluation, the unusable part of the log, and a refusal if the log
 *  cannot support an estimate. Writes nothing. */
import { type Digest, given, joinFaults, RollbookError, rngFrom } from "../../base/index.ts";
import type { PolicyRevision } from "../../contract/index.ts";
import { qualityOf } from "../../judge/evaluate/index.ts";
import {
  type Evaluation,
  evaluateExactly,
  evaluatePolicy,
  isFullyKnown,
  type JudgedRow,
  realisedRisk,
} from "../../judge/index.ts";
import type { Interval, Range } from "../../judge/ope/index.ts";
import type { AnyFeatureSpec, Constraints, StaticTable } from "../../policy/index.ts";
import type { DecisionRequest, DecisionSource } from "../decisions/index.ts";
import type { EmbeddingPlace } from "../embed/index.ts";
import type { AdmittedRollouts } from "../rollouts/index.ts";
import { followPromise, riskRows } from "./calibrate.ts";
import { chainDiscount } from "./chain-discount.ts";
import { type JudgeRows, judgeWholeRows, type RowOrder } from "./judge-rows.ts";
import { knownCandidates, type LoadedSetup, loadPolicy, setupOf } from "./load-policy.ts";
import { loadJudgeRows } from "./load-rows.ts";
import { PROMISE_TERMS } from "./promise-terms.ts";
import { requireJudgeable } from "./replay-limits.ts";

export interface JudgeRequest extends DecisionRequest {
  /** Confidence below which the table decides (default: the checkpoint's, else 0). */
  readonly floor?: number | undefined;
  /** Share of choices that the router will spread evenly. */
  readonly exploration?: number | undefined;
  /** Static table to fall back to (default: the one fitted in training). */
  readonly table?: string | StaticTable | undefined;
  /** Candidates of the router that the table is for. Some may be missing in the log. */
  readonly offered?: readonly string[] | undefined;
  /** Constraints that the router will apply as masks. */
  readonly constraints?: Constraints | undefined;
  /** Refuses a checkpoint that was trained on other features. */
  readonly spec?: AnyFeatureSpec | undefined;
  readonly qualityRange?: Range | undefined;
  readonly seed?: bigint | undefined;
  /** Source of embeddings for policies that read them (default: the cache of the book). */
  readonly embeddings?: EmbeddingPlace | undefined;
  /** Order of the rows (default: logged). Estimates are sums, so the order changes their last bits. */
  readonly order?: RowOrder | undefined;
  /** Judges rollouts with several decisions by their returns at this discount per decision (default: as the policy
   *  learned, else 1). With 0, each decision is judged by its own reward. */
  readonly discount?: number | undefined;
}

interface EvaluateRequest extends JudgeRequest {
  readonly checkpoint: string;
  /** Estimates missing propensities of a log. Such an evaluation certifies nothing. */
  readonly estimatePropensities?: boolean | undefined;
}

/** Result of the promised risk on rows that were used neither for training nor for calibration. */
export interface KeptPromise {
  readonly promise: Digest;
  readonly alpha: number;
  readonly floor: number | null;
  /** Absent if the log cannot support an estimate for the policy. */
  readonly realised?: number;
  readonly interval?: Interval;
  /** True if the floor was computed again from its calibration rows. */
  readonly followed: boolean;
}

export interface PolicyEvaluation {
  readonly evaluation: Evaluation;
  readonly judged: JudgeRows;
  readonly setup: LoadedSetup;
  readonly revision: PolicyRevision;
  readonly kept: KeptPromise | undefined;
  /** Given range of quality; undefined if a row lies outside. Printed estimates are clipped to it, JSON keeps the full
   *  values. */
  readonly range: Range | undefined;
  /** Admitted rollouts, and the ledger of the others; set only if the source is a book. */
  readonly admitted?: AdmittedRollouts | undefined;
  /** Set if the policy has no floor, or the log cannot show how good it is. */
  readonly refusal?: RollbookError | undefined;
}

export async function evaluateCheckpoint(
  source: DecisionSource,
  request: EvaluateRequest,
): Promise<PolicyEvaluation> {
  const { estimatePropensities = false } = request;
  const loaded = loadPolicy(request.checkpoint, request.spec);
  requireJudgeable(source, [loaded]);
  const { rows, admitted } = await loadJudgeRows(source, [loaded], {
    ...request,
    unlabelled: "keep",
    ...(estimatePropensities ? { propensity: "any" } : {}),
  });
  const discount = chainDiscount(rows, [loaded], request.discount);
  if (discount !== undefined && estimatePropensities) throw guessedChains();
  const { whole, judged } = judgeWholeRows(rows, [loaded], { discount, order: request.order });
  const setup = setupOf(loaded, {
    ...{ ...request, exploration: request.exploration ?? 0 },
    known: knownCandidates([loaded], rows),
  });
  const followed = followPromise(rows, loaded, setup) === true;
  const exact = discount === undefined && isFullyKnown(judged.rows);
  const evaluate = exact ? evaluateExactly : evaluatePolicy;
  const evaluation = evaluate(judged.rows, {
    setup,
    single: setup.single,
    rng: rngFrom(request.seed ?? 0n),
    judgeShare: judged.judgeShare,
    wholeLog: judged.wholeLog,
    unit: judged.rule.unit,
    ranges: given({ quality: request.qualityRange }),
    estimatePropensities,
    discount,
  });
  const ids = new Set(judged.rows.map(({ id }) => id));
  const risked = riskRows(whole, loaded.checkpoint.model, loaded.rule.unit).filter(({ id }) => ids.has(id));
  const refused = evaluation.contenders[0]!.basis === "refused" || risked.length === 0;
  const kept = keptBy(risked, { setup, refused });
  return {
    ...{ evaluation, judged, setup, admitted },
    revision: loaded.checkpoint.revision.record,
    kept: kept === undefined ? undefined : { ...kept, followed },
    range:
      discount === undefined
        ? keptRange(judged, evaluation, request.qualityRange ?? PROMISE_TERMS.qualityRange)
        : undefined,
    refusal: refusalOf(evaluation, loaded.checkpoint.revision.record.id),
  };
}

function keptBy(
  rows: readonly JudgedRow[],
  { setup: { promise, policy, table }, refused }: { setup: LoadedSetup; refused: boolean },
): Omit<KeptPromise, "followed"> | undefined {
  if (promise === undefined || policy === undefined) return undefined;
  const { floor, alpha, range, propensityFloor } = promise.record;
  if (refused) return { promise: promise.digest, alpha, floor };
  const { estimate, interval } = realisedRisk(rows, { policy, table, range, propensityFloor, floor });
  return { promise: promise.digest, alpha, floor, realised: estimate.value, interval };
}

function keptRange({ rows }: JudgeRows, { measures }: Evaluation, range: Range): Range | undefined {
  const quality = qualityOf(measures);
  const inside = rows.every(({ measures: { [quality]: value } }) => {
    return value !== null && value >= range.low && value <= range.high;
  });
  return inside ? range : undefined;
}

function refusalOf({ contenders, liveness }: Evaluation, id: string): RollbookError | undefined {
  // A larger log gives the policy no floor.
  if (liveness.floor === null)
    return new RollbookError(
      "no-floor",
      { revision: id },
      `${id} never decides: training found no confidence floor that keeps its promised risk. Train it again with a higher --floor-risk or more rows.`,
    );
  const [learned] = contenders;
  if (learned!.basis !== "refused") return undefined;
  const { reasons } = learned!;
  return new RollbookError(
    "refused",
    { reasons },
    `the log cannot say how good the policy is: ${joinFaults(reasons)}`,
  );
}

function guessedChains(): RollbookError {
  return new RollbookError(
    "bad-options",
    {},
    "these rollouts have several decisions, and whole chains are judged by logged probabilities only. Leave --estimate-propensities out, or judge each decision by its own reward with --discount 0.",
  );
}
