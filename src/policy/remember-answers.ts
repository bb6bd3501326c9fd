/** Caches a policy's answers to the last prompts. In: answers that depend on the prompt, some fields and the
 *  candidates. Out: the same answers, faster for a repeated question. Questions repeat: the turns of an agent repeat
 *  the user's words, and the rollouts of a group share a task. */
import type { DecisionCandidate, DecisionContext, DecisionPolicy, PolicyAnswer } from "./decision.ts";

type AnswerPrompt = DecisionPolicy["answer"];

interface Remembered {
  readonly prompt: string;
  /** Values of the fields, in the order of their names. */
  readonly values: readonly DecisionContext["fields"][string][];
  readonly candidates: readonly DecisionCandidate[];
  readonly answer: PolicyAnswer;
}

/** The cache has 2^PLACE_BITS places.
 *  A prompt's characters give its place; a later prompt of the same place evicts it. */
const PLACE_BITS = 8;
/** A longer prompt is not cached. */
const MOST_CHARS = 8192;
/** Number of characters that give the place. */
const SAMPLED = 8;

/** `fields`: the names of the fields that an answer depends on. */
export function rememberAnswers(answer: AnswerPrompt, fields: readonly string[]): AnswerPrompt {
  const known = new Array<Remembered | undefined>(2 ** PLACE_BITS).fill(undefined);
  // A gateway passes the same frozen list while no candidate fails. A frozen list is compared by identity only.
  let fixed: readonly DecisionCandidate[] | undefined;
  const isSame = (values: Remembered["values"], asked: DecisionContext["fields"]): boolean => {
    for (let i = 0; i < fields.length; i++) if (values[i] !== asked[fields[i]!]) return false;
    return true;
  };
  return (context, candidates) => {
    const { prompt } = context;
    const place = placeOf(prompt);
    const before = known[place];
    if (
      before !== undefined &&
      before.candidates === candidates &&
      before.prompt === prompt &&
      isSame(before.values, context.fields)
    )
      return before.answer;
    const made = answer(context, candidates);
    if (candidates !== fixed && isFixed(candidates)) fixed = candidates;
    if (candidates === fixed && prompt.length <= MOST_CHARS) {
      const values = fields.map((name) => context.fields[name]!);
      known[place] = { prompt, candidates, answer: made, values };
    }
    return made;
  };
}

/** True if the list cannot change. A mutable list may differ at its next use, so it is not cached. */
function isFixed(candidates: readonly DecisionCandidate[]): boolean {
  return Object.isFrozen(candidates) && candidates.every(Object.isFrozen);
}

/** A hash of the whole prompt would take longer than the comparison that follows it. */
function placeOf(prompt: string): number {
  const step = 1 + Math.floor(prompt.length / SAMPLED);
  let hash = prompt.length;
  for (let i = prompt.length - 1; i >= 0; i -= step)
    hash = Math.imul(hash ^ prompt.charCodeAt(i), 0x9e3779b1);
  return hash >>> (32 - PLACE_BITS);
}
