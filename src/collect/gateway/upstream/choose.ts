/** What a router is asked for each routed call, and what it answers. */
import type { RevisionKey } from "../../../contract/index.ts";
import type { Decision, DecisionCandidate, DecisionContext } from "../../../policy/index.ts";

export interface RouteQuestion {
  readonly alias: string;
  readonly context: DecisionContext;
  readonly candidates: readonly DecisionCandidate[];
  /** `<rollout>.<number>`, where there is a call: a router that draws by it can draw the same again. */
  readonly call?: string;
  /** The seed the client sent, where it sent one: a router that draws by it is reproducible, whatever comes first. */
  readonly seed?: number;
}

/** What a router answers: a decision, and the revision it is logged under. */
export interface RouteAnswer {
  readonly decision: Decision;
  readonly family: string;
  readonly revision: RevisionKey;
}

export type Choose = (question: RouteQuestion) => RouteAnswer;
