/** Open Bandit Dataset (Saito et al., arXiv 2008.07146): logs of a fashion shop with logged propensities,
 *  CSV or CSV.gz. */
import { type CsvRecord, headerOf, readCsv } from "./csv-records.ts";
import { badRow, type ForeignDecision, toIndex, toNumber, toPropensity } from "./foreign-decision.ts";

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
