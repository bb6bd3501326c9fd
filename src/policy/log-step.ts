/** A decision as the step that is sealed into a rollout. The reward comes later; until then it is unlabelled. */
import { parseId } from "../base/ids.ts";
import type { RevisionKey } from "../contract/policy-revision.ts";
import type { Step } from "../contract/stream.ts";
import type { Decision, DecisionCandidate } from "./decision.ts";

export function stepOf(options: {
  decision: Decision;
  candidates: readonly DecisionCandidate[];
  revision: RevisionKey;
  turn: number;
  call?: number;
  reward?: number | null;
}): Step {
  const { decision, candidates, revision, turn, call, reward = null } = options;
  return {
    revision,
    turn,
    ...(call === undefined ? {} : { call }),
    candidates: candidates.map((one, i) => ({
      id: one.id,
      selectable: one.selectable,
      reasons: one.reasons.map((reason) => parseId(reason, "reason")),
      probability: decision.probabilities[i]!,
    })),
    chosen: decision.chosen,
    reward,
    reason: decision.reason,
    ...(decision.monteCarlo === undefined ? {} : { monteCarlo: decision.monteCarlo }),
  };
}
