/** Remembers what a policy answered to the last prompts. In: answers that follow from the prompt, some fields and the
 *  candidates. Out: the same answers, sooner where a question comes again: the turns of an agent repeat the words of its
 *  user, and the rollouts of a group share a task. */
import type { DecisionCandidate, DecisionContext, DecisionPolicy, PolicyAnswer } from "./decision.ts";

type AnswerPrompt = DecisionPolicy["answer"];

interface Remembered {
  readonly prompt: string;
  /** Of the fields, in the order of their names. */
  readonly values: readonly DecisionContext["fields"][string][];
  readonly candidates: readonly DecisionCandidate[];
  readonly answer: PolicyAnswer;
}

/** Prompts that are remembered, each in the place its characters give: a later one of the same place takes it. */
const PLACE_BITS = 8;
/** A longer prompt is not held in memory. */
const MOST_CHARS = 8192;
/** Characters that give the place. */
const SAMPLED = 8;

/** `fields`: the names of those that an answer depends on. */
export function rememberAnswers(answer: AnswerPrompt, fields: readonly string[]): AnswerPrompt {
  const known = new Array<Remembered | undefined>(2 ** PLACE_BITS).fill(undefined);
  // A gateway shows one list while nothing fails: what cannot change need not be looked at again.
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

/** What can change is not the same list again. */
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
