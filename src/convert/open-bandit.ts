/** Open Bandit Dataset (Saito et al., arXiv 2008.07146): logs of a fashion shop with logged propensities,
 *  CSV or CSV.gz, and the Beta prior of its Bernoulli Thompson sampling policy. */
import { drawBeta, type Rng } from "../base/index.ts";
import { type CsvRecord, headerOf, readCsv } from "./csv-records.ts";
import { badRow, type ForeignDecision, toIndex, toNumber, toPropensity } from "./foreign-decision.ts";
import { readLines } from "./text-lines.ts";

export interface OpenBanditDecision extends ForeignDecision {
  /** 0, 1 or 2: left, centre, right. */
  readonly position: number;
}

export const POSITIONS = 3;

export async function* readOpenBandit(file: string): AsyncGenerator<OpenBanditDecision> {
  let parse: ((record: CsvRecord) => OpenBanditDecision) | undefined;
  for await (const record of readCsv(file)) {
    if (parse === undefined) parse = rowParser(file, record);
    else yield parse(record);
  }
}

function rowParser(file: string, head: CsvRecord): (record: CsvRecord) => OpenBanditDecision {
  const header = headerOf(head, file, ["item_id", "position", "click", "propensity_score"]);
  const users = [...header].filter(([name]) => name.startsWith("user_feature_"));
  const affinities = [...header].filter(([name]) => name.startsWith("user-item_affinity_"));
  const at = (name: string) => header.get(name)!;
  return ({ fields, line }) => {
    const place = { file, line };
    if (fields.length !== header.size)
      throw badRow(
        place,
        `${fields.length} fields, the header has ${header.size}`,
        "Restore the row from the source",
      );
    const position = toIndex(fields[at("position")], "position", place) - 1;
    if (position < 0 || position >= POSITIONS)
      throw badRow(place, "position is not 1, 2 or 3", "Restore the row");
    return {
      line,
      action: toIndex(fields[at("item_id")], "item_id", place),
      ...(affinities.length > 0 ? { actions: affinities.length } : {}),
      reward: toNumber(fields[at("click")], "click", place),
      propensity: toPropensity(fields[at("propensity_score")], "propensity_score", place),
      position,
      context: [
        ...users.map(([name, i]) => [`${name}=${fields[i]}`, 1] as const),
        [`position=${position + 1}`, 1],
      ],
      candidates: affinities.map(([name, i]) => [["affinity", toNumber(fields[i], name, place)]]),
    };
  };
}

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
