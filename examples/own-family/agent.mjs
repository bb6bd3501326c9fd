/** An agent with a reward function of its own, from outside the package. It reads Roman numerals without a model, and makes the
 *  mistake of a beginner where the configuration says `careless`. */
import { compositeReward, defineRollout } from "rollbook/rollout";

const VALUES = { I: 1, V: 5, X: 10, L: 50, C: 100, D: 500, M: 1000 };

/** Two terms: the share of right numbers, and a little for an answer of the right length. The label is the oracle, which the
 *  agent never sees. */
export const scorer = compositeReward({
  name: "roman",
  terms: [
    {
      name: "right",
      weight: 0.9,
      value: ({ finalState, task }) => {
        const { expected } = task.label.grading;
        return expected.filter((number, i) => finalState?.[i] === number).length / expected.length;
      },
    },
    {
      name: "complete",
      weight: 0.1,
      value: ({ finalState, task }) => (finalState?.length === task.label.grading.expected.length ? 1 : 0),
    },
  ],
});

export default defineRollout(
  async ({ statement }, { rolloutConfig }) => {
    const numerals = statement.match(/\b[IVXLCDM]+\b/g);
    return { finalState: numerals.map((each) => numberOf(each, rolloutConfig.careless === true)) };
  },
  { scorer },
);

function numberOf(numeral, careless) {
  return [...numeral].reduce((sum, letter, i) => {
    const value = VALUES[letter];
    return !careless && value < (VALUES[numeral[i + 1]] ?? 0) ? sum - value : sum + value;
  }, 0);
}
