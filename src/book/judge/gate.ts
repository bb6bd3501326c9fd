/** Passes a policy only if rows it has not seen show that it is not worse, and seals the reasons.
 *  In: a source of decisions, candidates, a baseline, a rule. Out: the verdict. If the source is a book, the verdict is
 *  sealed there, with the manifest of its rows and the ledger of the excluded ones. */
import { existsSync } from "node:fs";
import { type Clock, given, nearestName, RollbookError, rngFrom, systemClock } from "../../base/index.ts";
import type { GateVerdict, Sealed, SealedBlob } from "../../contract/index.ts";
import {
  checkData,
  type DataFinding,
  type GateMethod,
  type GateRule,
  gateExactly,
  gatePolicies,
  isGatedExactly,
  totalRewardRows,
} from "../../judge/index.ts";
import type { Range } from "../../judge/ope/index.ts";
import { fieldsNeverSent, neverSentWarning } from "../../policy/index.ts";
import { makeSealer } from "../../store/index.ts";
import type { DecisionSource } from "../decisions/index.ts";
import { type OpenBook, revisionsIn } from "../open/index.ts";
import type { AdmittedRollouts } from "../rollouts/index.ts";
import { followPromise } from "./calibrate.ts";
import { chainDiscount } from "./chain-discount.ts";
import type { JudgeRequest } from "./evaluate.ts";
import { type JudgeRows, judgeWholeRows } from "./judge-rows.ts";
import { knownCandidates, type LoadedPolicy, loadPolicy, setupOf } from "./load-policy.ts";
import { loadJudgeRows } from "./load-rows.ts";
import { PROMISE_TERMS } from "./promise-terms.ts";
import { requireJudgeable } from "./replay-limits.ts";
import { requireMargin } from "./require-margin.ts";
import { type Baseline, sealVerdict } from "./seal-verdict.ts";

export interface GateRequest extends JudgeRequest {
  /** Folders of the candidates' checkpoints. */
  readonly candidates: readonly string[];
  /** `static` (the table), `behaviour` (the policy behind the log), or the folder of a checkpoint. */
  readonly baseline?: string | undefined;
  /** Non-inferiority margins. */
  readonly epsilonQuality?: number | undefined;
  /** Null if cost is not judged. */
  readonly epsilonCost?: number | null | undefined;
  /** Judges the total reward instead of quality and cost separately: as logged, or quality minus a weight times cost.
   *  The margin is `epsilonQuality`. */
  readonly total?: { readonly costWeight?: number } | undefined;
  readonly alpha?: number | undefined;
  /** Number of all policies that were tried, also elsewhere (default: number of candidates). */
  readonly tried?: number | undefined;
  readonly method?: GateMethod | undefined;
  readonly propensityFloor?: number | undefined;
  readonly costRange?: Range | undefined;
  /** Book that the verdict is sealed in (default: the book the rows come from). */
  readonly keepIn?: OpenBook | undefined;
  /** Only judges: no verdict is sealed, so no policy is released. */
  readonly dryRun?: boolean | undefined;
  readonly clock?: Clock;
}

export interface GateResult {
  readonly verdict: Sealed<GateVerdict>;
  readonly sealed: boolean;
  /** True if routers of the book that keeps the verdict may serve the passed policy. The verdict must be sealed, and
   *  the book must hold the checkpoint. */
  readonly released: boolean;
  readonly judged: JudgeRows;
  /** Faults of the log; faults of severity `refuse` are also among the reasons. */
  readonly findings: readonly DataFinding[];
  readonly admitted?: AdmittedRollouts | undefined;
  /** Candidates without a record in the book that keeps the verdict. */
  readonly unrecorded: readonly { readonly id: string; readonly folder: string }[];
  /** Share of decisions that differ from the baseline's, for each candidate. */
  readonly changed: readonly number[];
  /** Fields that a candidate reads and no call through a gateway carries. */
  readonly neverSent: readonly string[];
}

export async function gateCheckpoints(source: DecisionSource, request: GateRequest): Promise<GateResult> {
  const flags = { ...request, exploration: request.exploration ?? 0 };
  const candidates = request.candidates.map((folder) => loadPolicy(folder, request.spec));
  const loaded = baselinePolicy(request);
  const policies = [...candidates, ...(loaded === undefined ? [] : [loaded])];
  requireJudgeable(source, policies, request.method);
  const { rows, admitted } = await loadJudgeRows(source, policies, { ...request, unlabelled: "keep" });
  const discount = chainDiscount(rows, candidates, request.discount);
  const { judged } = judgeWholeRows(rows, policies, { discount, order: request.order });
  const routing = { ...flags, known: knownCandidates(policies, rows) };
  const setups = candidates.map((each) => setupOf(each, routing));
  const baseline = baselineFrom(routing, { first: candidates[0]!, loaded });
  const { setup } = baseline;
  // If a floor does not follow from its calibration rows, the gate refuses, as an evaluation does.
  for (const [i, each] of candidates.entries()) followPromise(rows, each, setups[i]!);
  if (loaded !== undefined && setup !== undefined) followPromise(rows, loaded, setup);
  const rule = ruleOf({ ...request, discount });
  const seed = request.seed ?? 0n;
  const judging = request.total === undefined ? judged.rows : totalRewardRows(judged.rows, request.total);
  const { epsilonQuality } = rule;
  requireMargin(judging, { epsilonQuality, range: request.qualityRange, isChained: discount !== undefined });
  const options = {
    ...{ rule, candidates: setups, baseline: setup ?? ("behaviour" as const), rng: rngFrom(seed) },
    judgeShare: judged.judgeShare,
    wholeLog: judged.wholeLog,
    unit: judged.rule.unit,
  };
  const exact = discount === undefined && isGatedExactly(judged.rows, options);
  const gated = (exact ? gateExactly : gatePolicies)(judging, options);
  const keeper = request.keepIn ?? ("store" in source ? source : undefined);
  const book = request.dryRun === true ? undefined : keeper;
  const beside: SealedBlob[] = [];
  const verdict = sealVerdict({
    ...{ candidates, setups, gated, rule, judged, baseline, seed },
    atMs: (request.clock ?? book?.clock ?? systemClock).nowMs(),
    // Another book does not hold the rollouts that the manifest names.
    origin: book === source && admitted !== undefined ? keepOrigin(beside, admitted) : undefined,
  });
  if (book !== undefined)
    await makeSealer(book.store, book.signer).add({ envelope: verdict, blobs: [...beside, verdict] });
  const findings = checkData(judged.rows, discount);
  const unrecorded = book === undefined ? [] : await unrecordedIn(book, candidates);
  const changed = gated.map((each) => each.changed);
  const neverSent = candidates.flatMap(({ checkpoint: { model, revision } }) => {
    const names = fieldsNeverSent(model);
    return names.length === 0 ? [] : [neverSentWarning(revision.record.id, names)];
  });
  const { passed } = verdict.record;
  const released =
    book !== undefined &&
    passed !== undefined &&
    unrecorded.every(({ id }) => id !== passed.id) &&
    (await book.store.has(passed.digest));
  const sealed = book !== undefined;
  return { verdict, sealed, released, judged, findings, admitted, unrecorded, changed, neverSent };
}

async function unrecordedIn(
  book: OpenBook,
  candidates: readonly LoadedPolicy[],
): Promise<GateResult["unrecorded"]> {
  const known = new Set(revisionsIn(await book.index()).map(({ fields }) => fields.digest));
  return candidates
    .filter(({ checkpoint }) => !known.has(checkpoint.revision.record.digest))
    .map(({ checkpoint, folder }) => ({ id: checkpoint.revision.record.id, folder }));
}

/** Stores the manifest and the ledger of the rows, so that the verdict can be traced back to the rollouts. */
function keepOrigin(beside: SealedBlob[], { manifest, ledger }: AdmittedRollouts) {
  beside.push(manifest);
  const sealed = ledger.seal(manifest.digest, (blob) => beside.push(blob));
  return { manifest: manifest.digest, ledger: sealed.digest };
}

/** The checkpoint that is the baseline, if one is named. */
function baselinePolicy({ baseline = "static", spec }: GateRequest): LoadedPolicy | undefined {
  if (baseline === "behaviour" || baseline === "static") return undefined;
  if (existsSync(baseline)) return loadPolicy(baseline, spec);
  const meant = nearestName(baseline, ["behaviour", "static"]);
  throw new RollbookError(
    "no-checkpoint",
    { baseline, ...given({ meant }) },
    `--baseline ${baseline} is neither static (the table) nor behaviour (the log's policy) nor an existing folder of a checkpoint. ${meant === undefined ? "Name one of them." : `Did you mean ${meant}?`}`,
  );
}

function baselineFrom(
  request: GateRequest & Parameters<typeof setupOf>[1],
  { first, loaded }: { first: LoadedPolicy; loaded: LoadedPolicy | undefined },
): Baseline {
  if (loaded !== undefined) return { kind: "policy", loaded, setup: setupOf(loaded, request) };
  if (request.baseline === "behaviour") return { kind: "behaviour" };
  return { kind: "static", setup: { ...setupOf(first, request), policy: undefined } };
}

function ruleOf(request: GateRequest): GateRule {
  const { method = "student-t", alpha = 0.05, epsilonQuality = 0, costRange, total } = request;
  const { epsilonCost = 0 } = total === undefined ? request : { epsilonCost: null };
  const { propensityFloor, qualityRange: quality } = { ...PROMISE_TERMS, ...given(request) };
  const bounded = method !== "student-t";
  const stated = given({ quality: request.qualityRange, cost: costRange });
  return {
    ...{ method, alpha, epsilonQuality, epsilonCost, tried: request.tried ?? request.candidates.length },
    ...given({ discount: request.discount, total }),
    ...(bounded
      ? { propensityFloor, ranges: { quality, ...given({ cost: costRange }) } }
      : Object.keys(stated).length > 0
        ? { ranges: stated }
        : {}),
  };
}
