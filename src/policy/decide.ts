/** The only path from a question to a choice. Simulator, evaluation and router all use it, so the judged policy is the
 *  served policy. In: a question, a router, an rng. Out: a decision. Pure except for the rng. Does not log: the caller
 *  seals the decision. */
import { type Digest, digestJson, type Rng, RollbookError } from "../base/index.ts";
import { type Constraints, checkConstraints, constrain } from "./constraints.ts";
import type { Decision, DecisionCandidate, DecisionContext, DecisionPolicy } from "./decision.ts";
import type { StaticTable } from "./static-table.ts";

/** All inputs of the final distribution. Their digest is the revision under which a decision is logged. */
export interface Router {
  policy?: DecisionPolicy;
  table: StaticTable;
  /** The table decides if the policy's confidence is below this floor. */
  floor: number;
  /** Share of choices spread evenly over the selectable candidates, so that the log supports evaluation. */
  exploration: number;
  /** Candidates that break these constraints are masked before the policy or the table is asked. */
  constraints?: Constraints;
}

const SUM_TOLERANCE = 1e-9;

export function digestRouter({
  policy,
  table,
  floor,
  exploration,
  constraints,
}: Omit<Router, "policy"> & { policy?: Pick<DecisionPolicy, "revision"> }): Digest {
  return digestJson("rollbook.router.v1", {
    policy: policy?.revision.digest ?? null,
    table: table.digest,
    floor,
    exploration,
    // Absent, not null, so that a router without constraints keeps its earlier digest.
    ...(constraints === undefined ? {} : { constraints }),
  });
}

export function decide(
  context: DecisionContext,
  candidates: readonly DecisionCandidate[],
  router: Router,
  rng: Rng,
): Decision {
  const {
    probabilities,
    reason,
    confidence,
    monteCarlo,
    candidates: seen,
    relaxed,
  } = distribution(context, candidates, router);
  const decision: Decision = { chosen: draw(probabilities, rng), probabilities, reason, confidence };
  if (monteCarlo !== undefined) decision.monteCarlo = monteCarlo;
  if (seen !== undefined) decision.candidates = seen;
  if (relaxed !== undefined) decision.relaxed = relaxed;
  return decision;
}

/** The final distribution without a draw, for off-policy evaluation. */
export function distribution(
  context: DecisionContext,
  asked: readonly DecisionCandidate[],
  router: Router,
): Omit<Decision, "chosen"> {
  checkRouter(router);
  if (router.constraints === undefined) return unconstrained(context, asked, router);
  const { candidates, relaxed } = constrain(context, asked, router.constraints);
  const decided = unconstrained(context, candidates, router);
  return {
    ...{ ...decided, candidates },
    ...(relaxed.length === 0 ? {} : { reason: "constraints-relaxed", relaxed }),
  };
}

function unconstrained(
  context: DecisionContext,
  candidates: readonly DecisionCandidate[],
  router: Router,
): Omit<Decision, "chosen"> {
  let [open, only] = [0, -1];
  for (let i = 0; i < candidates.length; i++) {
    if (!candidates[i]!.selectable) continue;
    open++;
    only = i;
  }
  if (open === 0) {
    throw new RollbookError(
      "no-candidate",
      { candidates: candidates.map(({ id, reasons }) => ({ id, reasons })) },
      `none of the ${candidates.length} candidates is selectable (${candidates
        .map(({ id, reasons }) => `${id}: ${reasons.join(", ") || "no reason given"}`)
        .join("; ")}). Loosen the constraints or add a candidate.`,
    );
  }
  const answer = router.policy?.answer(context, candidates);
  if (answer !== undefined) checkAnswer(answer.probabilities, candidates, router.policy!);
  const confidence = answer?.confidence ?? null;
  if (open === 1)
    return { probabilities: oneHot(candidates.length, only), reason: "only-candidate", confidence };
  const trusted = answer !== undefined && answer.confidence >= router.floor;
  const best = trusted ? -1 : tableChoice(context, candidates, router.table);
  const share = router.exploration / open;
  const probabilities = new Array<number>(candidates.length);
  for (let i = 0; i < candidates.length; i++) {
    const base = trusted ? answer.probabilities[i]! : i === best ? 1 : 0;
    probabilities[i] = candidates[i]!.selectable ? (1 - router.exploration) * base + share : 0;
  }
  const isLearned = answer !== undefined && router.policy?.declared === undefined;
  const reason = !isLearned ? "no-policy" : trusted ? "policy" : "below-floor";
  const decided: Omit<Decision, "chosen"> = { probabilities, reason, confidence };
  if (trusted && answer.monteCarlo !== undefined) decided.monteCarlo = answer.monteCarlo;
  return decided;
}

function tableChoice(
  context: DecisionContext,
  candidates: readonly DecisionCandidate[],
  table: StaticTable,
): number {
  const index = table.choose(context, candidates);
  if (index >= 0) return index;
  throw new RollbookError(
    "no-candidate",
    { table: [...table.names] },
    `the static table names none of the selectable candidates (${candidates
      .filter((one) => one.selectable)
      .map((one) => one.id)
      .join(", ")}). Add one to its default.`,
  );
}

/** The index that one draw selects. Candidates with probability 0 are never selected. */
export function draw(probabilities: readonly number[], rng: Rng): number {
  const point = rng.float();
  let sum = 0;
  let last = 0;
  for (let i = 0; i < probabilities.length; i++) {
    const probability = probabilities[i]!;
    if (probability === 0) continue;
    sum += probability;
    last = i;
    if (point < sum) return i;
  }
  return last; // rounding left the sum slightly below 1
}

function oneHot(length: number, index: number): number[] {
  const hot = new Array<number>(length).fill(0);
  hot[index] = 1;
  return hot;
}

function checkRouter({ floor, exploration, constraints }: Router): void {
  if (constraints !== undefined) checkConstraints(constraints);
  checkShare("floor", floor);
  checkShare("exploration", exploration);
}

function checkShare(name: string, value: number): void {
  if (value >= 0 && value <= 1) return;
  throw new RollbookError("bad-router", { name, value }, `${name} is ${value}, not a number in 0 … 1.`);
}

function checkAnswer(
  probabilities: readonly number[],
  candidates: readonly DecisionCandidate[],
  policy: DecisionPolicy,
): void {
  let sum = 0;
  let bad = probabilities.length !== candidates.length;
  for (let i = 0; i < probabilities.length; i++) {
    const each = probabilities[i]!;
    sum += each;
    if (!(each >= 0) || (each > 0 && candidates[i]?.selectable !== true)) bad = true;
  }
  if (!(Math.abs(sum - 1) <= SUM_TOLERANCE)) bad = true;
  if (bad)
    throw new RollbookError(
      "bad-answer",
      { revision: policy.revision.id, probabilities },
      `revision ${policy.revision.id} answered ${JSON.stringify(probabilities)} for ${candidates.length} candidates: not a distribution over the selectable ones.`,
    );
}
