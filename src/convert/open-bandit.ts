/** Open Bandit Dataset (Saito et al., arXiv 2008.07146): logs of a fashion shop with logged propensities,
 *  CSV or CSV.gz. */
import { type CsvRecord, readTable } from "./csv-records.ts";
import {
  badRow,
  type ForeignDecision,
  timeOf,
  toAction,
  toIndex,
  toNumber,
  toPropensity,
} from "./foreign-decision.ts";

export interface OpenBanditDecision extends ForeignDecision {
  /** 0, 1 or 2: left, centre, right. */
  readonly position: number;
}

export const POSITIONS = 3;

const NEEDED = ["item_id", "position", "click", "propensity_score"];

export function readOpenBandit(file: string): AsyncGenerator<OpenBanditDecision> {
  return readTable(file, NEEDED, (header) => rowParser(file, header));
}

function rowParser(
  file: string,
  header: ReadonlyMap<string, number>,
): (record: CsvRecord) => OpenBanditDecision {
  const users = [...header].filter(([name]) => name.startsWith("user_feature_"));
  const affinities = [...header].filter(([name]) => name.startsWith("user-item_affinity_"));
  const at = (name: string) => header.get(name)!;
  return ({ fields, line }) => {
    const place = { file, line };
    const position = toIndex(fields[at("position")], "position", place) - 1;
    if (position < 0 || position >= POSITIONS)
      throw badRow(place, "position is not 1, 2 or 3", "Restore the row");
    return {
      line,
      ...(header.has("timestamp") ? timeOf(fields[at("timestamp")], "timestamp", place) : {}),
      action: toAction(fields[at("item_id")], "item_id", place),
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
