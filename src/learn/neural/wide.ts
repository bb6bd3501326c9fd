/** The wide part of a wide-and-deep value network (Cheng et al., 2016): a linear model of every word that training saw.
 *  The network corrects it. In: rows in the order of their transitions, the numbers of the training rows. Out: the
 *  linear model's prediction for each row, and its tensors.
 *  Fitted before the first gradient step, so it needs fixed targets. */
import type { Rng } from "../../base/index.ts";
import { decodeModel, encodeModel, type PolicyModel, wideValues } from "../../policy/index.ts";
import type { LoggedRow } from "../rows/index.ts";
import { type CrossFitted, crossFitLinear } from "../value/index.ts";
import { pick } from "./chain-columns.ts";
import type { PreparedRows } from "./setup.ts";

export interface WidePart extends Pick<CrossFitted, "spec" | "tensors" | "settings"> {
  /** Rows × candidates. The value of a training row comes from a model that has not seen its task. */
  readonly values: Float32Array;
  /** The largest difference between the linear model in memory and in a checkpoint. */
  readBackError(model: PolicyModel): number;
}

/** Number of rows that the read-back compares. */
const COMPARED = 64;

export function fitWide(
  rows: readonly LoggedRow[],
  { data, train, held }: Pick<PreparedRows, "data" | "train" | "held">,
  rng: Rng,
): WidePart {
  const arms = data.arms.length;
  const items = Array.from(train, (row) => rows[row]!);
  const fitted = crossFitLinear(
    items,
    {
      ...{ action: pick(data.action, train), reward: pick(data.reward, train), arms },
      groups: Array.from(train, (row) => data.units[data.unit[row]!]!),
    },
    BigInt(rng.u32()),
  );
  const { spec, tensors, settings } = fitted;
  const values = new Float32Array(data.count * arms);
  train.forEach((row, i) => {
    values.set(fitted.unseen.subarray(i * arms, (i + 1) * arms), row * arms);
  });
  const linear = wideValues({ arms: data.arms, spec, tensors, settings });
  for (const row of held) values.set(linear(rows[row]!.context), row * arms);
  return {
    ...{ spec, tensors, settings, values },
    readBackError(model) {
      const stored = wideValues({ ...decodeModel(encodeModel(model), "the trained model"), spec });
      const own = new Float64Array(arms);
      let worst = 0;
      for (const [i, { context }] of items.slice(0, COMPARED).entries()) {
        fitted.predict(i, own);
        stored(context).forEach((value, a) => {
          worst = Math.max(worst, Math.abs(value - own[a]!));
        });
      }
      return worst;
    },
  };
}
