import fc from "fast-check";
import { expect, it } from "vitest";
import { candidate } from "../../test/support/decision-world.ts";
import type { DecisionCandidate, DecisionContext, PolicyAnswer } from "./decision.ts";
import { rememberAnswers } from "./remember-answers.ts";

/** An answer that changes with every input it may depend on. */
function direct({ prompt, fields }: DecisionContext, candidates: readonly DecisionCandidate[]): PolicyAnswer {
  const text = JSON.stringify([prompt, fields.turn ?? null, candidates]);
  let sum = 0;
  for (let i = 0; i < text.length; i++) sum = (31 * sum + text.charCodeAt(i)) % 1_000_003;
  return { probabilities: candidates.map(() => sum), confidence: sum };
}

const fixed = (...list: DecisionCandidate[]) => Object.freeze(list.map((one) => Object.freeze(one)));
const lists: readonly (readonly DecisionCandidate[])[] = [
  fixed(candidate("a"), candidate("b")),
  fixed(candidate("a"), candidate("b", false)),
  [candidate("a"), candidate("b")],
];
// Prompts that differ in one character share a place, so that one prompt evicts another.
const prompt = fc.oneof(
  fc
    .tuple(fc.nat(80), fc.constantFrom("x", "y"))
    .map(([at, mark]) => `${"a".repeat(at)}${mark}${"a".repeat(80 - at)}`),
  fc.string({ maxLength: 4 }),
  fc.constantFrom("", "b".repeat(9000)),
);
const question = fc.record({
  ...{ prompt, list: fc.constantFrom(...lists) },
  fields: fc.constantFrom<DecisionContext["fields"]>({}, { turn: 1 }, { turn: "1" }, { turn: 1, other: 2 }),
});

it("gives the answers that the policy itself gives, in any order of questions", () => {
  fc.assert(
    fc.property(fc.array(question, { maxLength: 60 }), (questions) => {
      const remembered = rememberAnswers(direct, ["turn"]);
      for (const { list, ...context } of [...questions, ...questions])
        expect(remembered(context, list)).toEqual(direct(context, list));
    }),
    { numRuns: 300 },
  );
});

it("asks once for a question that comes again, and each time where the candidates may change", () => {
  let asked = 0;
  const remembered = rememberAnswers((context, candidates) => {
    asked++;
    return direct(context, candidates);
  }, []);
  const ask = (list: readonly DecisionCandidate[]) => remembered({ prompt: "p", fields: {} }, list);
  for (let i = 0; i < 5; i++) ask(lists[0]!);
  expect(asked).toBe(1);
  const open = [candidate("a"), candidate("b")];
  ask(open);
  open[1]!.selectable = false;
  expect(ask(open)).toEqual(direct({ prompt: "p", fields: {} }, open));
  expect(asked).toBe(3);
});
