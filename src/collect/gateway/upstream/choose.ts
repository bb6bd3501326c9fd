/** Question to a router for each routed call, and its answer. Types only. */
import type { RevisionKey } from "../../../contract/index.ts";
import type { Decision, DecisionCandidate, DecisionContext } from "../../../policy/index.ts";

export interface RouteQuestion {
  readonly alias: string;
  readonly context: DecisionContext;
  readonly candidates: readonly DecisionCandidate[];
  /** `<rollout>.<number>`, if there is a call. A router that draws with this key can repeat the draw. */
  readonly call?: string;
  /** The `splitKey` of the call, if the caller knows it: hashing a long id takes a tenth of a decision's time. */
  readonly callKey?: number | undefined;
  /** The client's seed, if it sent one. The router of a gateway draws by `call`; that of the simulator draws by this
   *  seed. */
  readonly seed?: number;
}

/** A router's answer: a decision, and the revision under which it is logged. */
export interface RouteAnswer {
  readonly decision: Decision;
  readonly family: string;
  readonly revision: RevisionKey;
}

export type Choose = (question: RouteQuestion) => RouteAnswer;
