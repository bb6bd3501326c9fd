/** Turns a decision into the step that is sealed into a rollout.
 *  In: a decision, its context, its candidates. Out: a step with the policy's input, except the prompt: the call holds
 *  the prompt. The candidates carry the router's masks. The reward comes later; until then the step is unlabelled. */
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
    ...(decision.relaxed === undefined
      ? {}
      : { relaxed: decision.relaxed.map((reason) => parseId(reason, "reason")) }),
    ...(decision.monteCarlo === undefined ? {} : { monteCarlo: decision.monteCarlo }),
    // A decision of a router without a named policy keeps its earlier form in the log.
    ...(policy === undefined ? {} : { policy, confidence: decision.confidence ?? 0 }),
    ...(shadow === undefined ? {} : { shadow: { ...shadow, probabilities: [...shadow.probabilities] } }),
  };
}

function isEmpty(record: Readonly<Record<string, unknown>>): boolean {
  return Object.keys(record).length === 0;
}
