/** A corridor of five cells with known Q values: plain double Q-learning finds them. */

import { digestRows, trainCql } from "../../src/learn/index.ts";
import { meanOutput, mlpOutputs } from "../../src/policy/mlp-policy.ts";
import { CELLS, cellFields, corridorValues, corridorWalks } from "../../test/support/chain-world.ts";
import { type JudgePart, row } from "../judge/part.ts";

export const chain: JudgePart = {
  name: "chain",
  async run({ rng }) {
    const rows = corridorWalks(300);
    const config = {
      hidden: [64],
      steps: 6000,
      rate: 1e-3,
      targetEvery: 100,
      discount: 0.9,
      conservatism: 0,
      holdout: 0,
    };
    const outputs = mlpOutputs(trainCql({ rows, digest: digestRows(rows) }, config, rng).model);
    const errors = corridorValues(0.9).flatMap((values, cell) => {
      const found = outputs({ prompt: "", fields: Object.fromEntries(cellFields(cell)) });
      return values.map((value, move) => Math.abs(value - meanOutput(found, move)));
    });
    const worst = Math.max(...errors);
    return [
      row(
        `corridor, ${CELLS} cells, 300 walks`,
        "largest error of Q without the penalty",
        worst.toExponential(1),
        {
          ...{ text: "≤ 1e-3", met: worst <= 1e-3 },
        },
      ),
    ];
  },
};
