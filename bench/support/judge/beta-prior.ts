/** The Beta prior of the Bernoulli Thompson sampling policy behind the Open Bandit logs,
 *  and the probabilities it gives. */
import { drawBeta, type Rng } from "../../../src/base/index.ts";
import { badRow, toNumber } from "../../../src/convert/foreign-decision.ts";
import { POSITIONS } from "../../../src/convert/open-bandit.ts";
import { readLines } from "../../../src/convert/text-lines.ts";

export interface BetaPrior {
  readonly alpha: readonly number[];
  readonly beta: readonly number[];
}

/** One campaign of prior_bts.yaml: `campaign: / alpha: / - number … / beta: / - number …`. */
export async function readBetaPrior(file: string, campaign: string): Promise<BetaPrior> {
  const prior: { alpha: number[]; beta: number[] } = { alpha: [], beta: [] };
  let inCampaign = false;
  let list: number[] | undefined;
  for await (const { text, line } of readLines(file)) {
    const place = { file, line };
    const item = /^\s*-\s*(\S+)\s*$/.exec(text);
    const key = /^(\s*)([A-Za-z_]+):\s*$/.exec(text);
    if (key?.[1] === "") inCampaign = key[2] === campaign;
    else if (key && (key[2] === "alpha" || key[2] === "beta")) list = prior[key[2]];
    else if (item && list && inCampaign) list.push(toNumber(item[1], "prior", place));
    else if (!item && text.trim() !== "")
      throw badRow(place, "is neither a campaign, alpha, beta nor a number", "Restore the file");
  }
  if (prior.alpha.length === 0 || prior.alpha.length !== prior.beta.length)
    throw badRow({ file, line: 1 }, `no prior for campaign ${campaign}`, "Campaigns are all, men and women");
  return prior;
}

/** P(item at position) when the three best draws are shown in order: POSITIONS × items, by `draws` simulations. */
export function thompsonPositions(
  prior: BetaPrior,
  { draws, rng }: { draws: number; rng: Rng },
): Float64Array[] {
  const items = prior.alpha.length;
  const shares = Array.from({ length: POSITIONS }, () => new Float64Array(items));
  const sample = new Float64Array(items);
  for (let draw = 0; draw < draws; draw++) {
    for (let i = 0; i < items; i++) sample[i] = drawBeta(prior.alpha[i]!, prior.beta[i]!, rng);
    for (const share of shares) {
      let best = 0;
      for (let i = 1; i < items; i++) if (sample[i]! > sample[best]!) best = i;
      share[best] = share[best]! + 1 / draws;
      sample[best] = -1;
    }
  }
  return shares;
}
