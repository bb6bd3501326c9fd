/** A decision as the step that is sealed into a rollout, with what the policy was shown beside the prompt, which the call
 *  holds. The candidates are those the router saw, with its masks. The reward comes later; until then it is unlabelled. */
import { parseId } from "../base/index.ts";
import type { RevisionKey, Step } from "../contract/index.ts";
import type { Decision, DecisionCandidate, DecisionContext } from "./decision.ts";

export interface DecisionToLog {
  readonly decision: Decision;
  readonly context: Pick<DecisionContext, "fields">;
  readonly candidates: readonly DecisionCandidate[];
  readonly revision: RevisionKey;
  readonly turn: number;
  readonly call?: number;
  readonly reward?: number | null;
}

export function stepOf(options: DecisionToLog): Step {
  const { decision, context, revision, turn, call, reward = null } = options;
  const { candidates = options.candidates, policy, shadow } = decision;
  return {
    revision,
    turn,
    ...(call === undefined ? {} : { call }),
    ...(isEmpty(context.fields) ? {} : { seen: context.fields }),
    candidates: candidates.map((one, i) => ({
      id: one.id,
      selectable: one.selectable,
      reasons: one.reasons.map((reason) => parseId(reason, "reason")),
      probability: decision.probabilities[i]!,
      ...(isEmpty(one.features) ? {} : { seen: one.features }),
    })),
    chosen: decision.chosen,
    reward,
    reason: decision.reason,
    ...(decision.monteCarlo === undefined ? {} : { monteCarlo: decision.monteCarlo }),
    // Decisions of routers that do not name a policy stay as they were logged before.
    ...(policy === undefined ? {} : { policy, confidence: decision.confidence ?? 0 }),
    ...(shadow === undefined ? {} : { shadow: { ...shadow, probabilities: [...shadow.probabilities] } }),
  };
}

function isEmpty(record: Readonly<Record<string, unknown>>): boolean {
  return Object.keys(record).length === 0;
}
