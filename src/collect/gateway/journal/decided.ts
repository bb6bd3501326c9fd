/** A decision in the journal. What repeats from call to call (the router, its candidates) is put into words once; the rest is
 *  a short list. The step that a rollout seals is made of it later, off the serving thread. Pure but for remembered texts. */
import type { RevisionKey, Step } from "../../../contract/index.ts";
import { type Decision, type DecisionCandidate, type DecisionToLog, stepOf } from "../../../policy/index.ts";

/** What a router shows of itself in every decision. */
interface RouterFrame {
  readonly revision: RevisionKey;
  readonly policy: RevisionKey | undefined;
  readonly shadow: RevisionKey | undefined;
  readonly text: string;
}

type ShownByRouter = Pick<RouterFrame, "revision" | "policy" | "shadow"> & {
  readonly candidates: readonly DecisionCandidate[];
};
type MadeByRouter = [
  chosen: number,
  probabilities: Decision["probabilities"],
  reason: Decision["reason"],
  confidence: Decision["confidence"],
  turn: number,
  call: number | null,
  fields: DecisionToLog["context"]["fields"],
  monteCarlo: Decision["monteCarlo"] | null,
  shadow: Pick<NonNullable<Decision["shadow"]>, "chosen" | "probabilities"> | null,
];

/** As it stands in an entry. */
export type DecidedJson = [ShownByRouter, MadeByRouter];

/** The last frame of every list of candidates that cannot change: a gateway shows a router one list while nothing fails. */
const FRAMES = new WeakMap<readonly DecisionCandidate[], RouterFrame>();

export function decidedText({ decision, context, candidates, revision, turn, call }: DecisionToLog): string {
  const { chosen, probabilities, reason, confidence, policy, shadow, monteCarlo } = decision;
  const seen = decision.candidates ?? candidates;
  let frame = FRAMES.get(seen);
  if (frame?.revision !== revision || frame.policy !== policy || frame.shadow !== shadow?.revision) {
    const shown: ShownByRouter = { revision, policy, shadow: shadow?.revision, candidates: seen };
    frame = { ...shown, text: JSON.stringify(shown) };
    if (Object.isFrozen(seen)) FRAMES.set(seen, frame);
  }
  const shadowed = shadow === undefined ? null : shadowOf(shadow);
  const { fields } = context;
  const drawn = monteCarlo ?? null;
  const made: MadeByRouter = [
    chosen,
    probabilities,
    reason,
    confidence,
    turn,
    call ?? null,
    fields,
    drawn,
    shadowed,
  ];
  return `[${frame.text},${JSON.stringify(made)}]`;
}

export function stepDecided([{ revision, policy, shadow, candidates }, made]: DecidedJson): Step {
  const [chosen, probabilities, reason, confidence, turn, call, fields, monteCarlo, shadowed] = made;
  const decision: Decision = { chosen, probabilities, reason, confidence };
  if (monteCarlo !== null) decision.monteCarlo = monteCarlo!;
  if (policy !== undefined) decision.policy = policy;
  if (shadow !== undefined) decision.shadow = { revision: shadow, ...shadowed! };
  return stepOf({
    decision,
    context: { fields },
    candidates,
    revision,
    turn,
    ...(call === null ? {} : { call }),
  });
}

function shadowOf({ chosen, probabilities }: NonNullable<Decision["shadow"]>) {
  return { chosen, probabilities };
}
