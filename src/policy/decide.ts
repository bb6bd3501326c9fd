/** The one path from a question to a choice. Simulator, evaluation and router all take it, so what is judged is what
 *  is served. Pure but for the rng it is given. Does not log: the caller seals what it returns. */
import { type Digest, digestJson, type Rng, RollbookError } from "../base/index.ts";
import { type Constraints, checkConstraints, constrain } from "./constraints.ts";
import type { Decision, DecisionCandidate, DecisionContext, DecisionPolicy } from "./decision.ts";
import type { StaticTable } from "./static-table.ts";

/** Everything the final distribution depends on. Its digest is the revision that a decision is logged under. */
export interface Router {
  policy?: DecisionPolicy;
  table: StaticTable;
  /** Below this confidence of the policy the table decides. */
  floor: number;
  /** Share of choices spread evenly over the selectable candidates, so that the log supports evaluation. */
  exploration: number;
  /** Candidates that break these are masked before anything is asked. */
  constraints?: Constraints;
}

const SUM_TOLERANCE = 1e-9;

export function digestRouter({ policy, table, floor, exploration, constraints }: Router): Digest {
  return digestJson("rollbook.router.v1", {
    policy: policy?.revision.digest ?? null,
    table: table.digest,
    floor,
    exploration,
    // Absent, not null: a router without constraints has the digest it always had.
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
  } = distribution(context, candidates, router);
  const decision: Decision = { chosen: draw(probabilities, rng), probabilities, reason, confidence };
  if (monteCarlo !== undefined) decision.monteCarlo = monteCarlo;
  if (seen !== undefined) decision.candidates = seen;
  return decision;
}

/** The final distribution without a draw: what off-policy evaluation needs. */
export function distribution(
  context: DecisionContext,
  asked: readonly DecisionCandidate[],
  router: Router,
): Omit<Decision, "chosen"> {
  checkRouter(router);
  if (router.constraints === undefined) return unconstrained(context, asked, router);
  const { candidates, relaxed } = constrain(context, asked, router.constraints);
  const decided = unconstrained(context, candidates, router);
  return { ...decided, candidates, ...(relaxed ? { reason: "constraints-relaxed" } : {}) };
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
  const reason = trusted ? "policy" : answer === undefined ? "no-policy" : "below-floor";
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

/** The index that one draw takes; zeros are never taken. */
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
  return last; // rounding left the sum a hair below 1
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
