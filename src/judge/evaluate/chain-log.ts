/** Logged chains of decisions as the columns that chain estimators read.
 *  In: logged rows in any order, a discount, routers. Out: columns by episode and step; the returns of the log itself. Pure. */
import { compareUtf8, RollbookError } from "../../base/index.ts";
import {
  armsOf,
  compareNatural,
  denseSpec,
  fieldsOf,
  type LoggedRow,
  type SplitUnit,
  unitOf,
} from "../../learn/index.ts";
import { distribution, makeFeatureReader, type Router } from "../../policy/index.ts";
import { type Estimate, episodesOf, type LoggedDecisions, meanOverUnits } from "../ope/index.ts";

/** Episodes by name, steps in order; a chain must be logged with probabilities and outcomes throughout. */
export function inEpisodes(rows: readonly LoggedRow[]): readonly LoggedRow[] {
  for (const { id, propensity, reward } of rows)
    if (propensity === null || reward === null)
      throw new RollbookError(
        propensity === null ? "missing-propensity" : "unlabelled",
        { decision: id },
        `decision ${id} has no ${propensity === null ? "logged probability" : "reward"}, and a chain is judged as a whole. Leave its episode out.`,
      );
  return [...rows].sort((a, b) => compareUtf8(a.chain, b.chain) || compareNatural(a.id, b.id));
}

/** Episodes that share `unit` count as one. */
export function chainColumns(
  rows: readonly LoggedRow[],
  { discount, unit }: { discount: number; unit: SplitUnit },
): LoggedDecisions {
  const arms = armsOf(rows);
  const places = new Map(arms.map((id, a) => [id, a]));
  const episode = new Int32Array(rows.length);
  const step = new Int32Array(rows.length);
  rows.forEach((row, r) => {
    const goesOn = r > 0 && rows[r - 1]!.chain === row.chain;
    episode[r] = r === 0 ? 0 : episode[r - 1]! + (goesOn ? 0 : 1);
    step[r] = goesOn ? step[r - 1]! + 1 : 0;
  });
  const reader = makeFeatureReader(denseSpec(fieldsOf(rows)));
  const values = new Float64Array(rows.length * reader.size);
  rows.forEach((row, r) => {
    const { indices, values: found, count } = reader.context(row.context);
    for (let e = 0; e < count; e++) values[r * reader.size + indices[e]!] = found[e]!;
  });
  return {
    reward: Float64Array.from(rows, ({ reward }) => reward!),
    behaviour: Float64Array.from(rows, ({ propensity }) => propensity!),
    target: new Float64Array(rows.length),
    candidates: {
      count: arms.length,
      chosen: Int32Array.from(rows, (row) => places.get(row.candidates[row.chosen]!.id)!),
      target: new Float64Array(rows.length * arms.length),
    },
    context: { width: reader.size, values },
    ...{ episode, chain: { step, discount, unit: numbersOf(rows, unit) } },
  };
}

function numbersOf(rows: readonly LoggedRow[], unit: SplitUnit): Int32Array {
  const numbers = new Map<string, number>();
  return Int32Array.from(rows, (row) => {
    const name = unitOf(row, unit);
    if (!numbers.has(name)) numbers.set(name, numbers.size);
    return numbers.get(name)!;
  });
}

export function withTarget(
  log: LoggedDecisions,
  rows: readonly LoggedRow[],
  router: Router,
): LoggedDecisions {
  const { count, chosen } = log.candidates!;
  const places = new Map(armsOf(rows).map((id, a) => [id, a]));
  const target = new Float64Array(rows.length * count);
  rows.forEach((row, r) => {
    distribution(row.context, row.candidates, router).probabilities.forEach((share, c) => {
      target[r * count + places.get(row.candidates[c]!.id)!] = share;
    });
  });
  return {
    ...log,
    target: Float64Array.from(chosen, (a, r) => target[r * count + a]!),
    candidates: { ...log.candidates!, target },
  };
}

/** Σ γᵗ·r per episode of the log, averaged by unit. */
export function loggedReturns(log: LoggedDecisions): Estimate {
  const { reward, episode, chain } = log;
  const returns = new Float64Array(episode!.at(-1)! + 1);
  let factor = 1;
  reward.forEach((each, r) => {
    factor = chain!.step[r] === 0 ? 1 : factor * chain!.discount;
    returns[episode![r]!] = returns[episode![r]!]! + factor * each;
  });
  return meanOverUnits("mean", returns, episodesOf(log));
}
