/** The published routing generator, seed 42: the naive mean, our intervals and the known truth. */
import { judgePolicy, panelText } from "../../src/judge/ope/index.ts";
import { fallbackWorld } from "../../test/ope/fallback-world.ts";
import { equalTo, type JudgePart, row } from "./part.ts";

export const seed42: JudgePart = {
  name: "seed-42",
  async run({ rng }) {
    const { alwaysPrimary, truth } = fallbackWorld();
    const verdict = judgePolicy(alwaysPrimary, { rng });
    const set = "routing generator, seed 42";
    const known = row(set, "truth", truth.primary.toFixed(3), equalTo(truth.primary, 0.476, 3));
    if (verdict.kind === "refused") return [known, row(set, "verdict", panelText(verdict))];
    const rows = verdict.rows
      .filter(({ bias }) => bias === "none")
      .map(({ estimate, intervals }) => {
        const [{ low, high }] = intervals as [(typeof intervals)[number]];
        const text = `${estimate.value.toFixed(3)} [${low.toFixed(3)}, ${high.toFixed(3)}]`;
        return row(set, `${estimate.name}, bootstrap`, text, {
          text: "covers the truth",
          met: low <= truth.primary && truth.primary <= high,
        });
      });
    return [known, row(set, "naive mean of matching rows, biased", verdict.naive.toFixed(3)), ...rows];
  },
};
