/** Previews an import before it writes anything: the first rows, and the facts that the log lacks.
 *  In: a path, the options to read it. Out: counts of the whole file, three rows, the missing parts and their
 *  effects. */
import { MetaTally, type RoutingMeta } from "../../convert/index.ts";
import { columnsOfTable, wantedColumns } from "../../convert/mapped/index.ts";
import { type LoggedRow, spentOf } from "../../learn/index.ts";
import { logWarnings } from "./log-warnings.ts";
import { isTableFormat, type LogOptions, readLog } from "./read-log.ts";

const SHOWN_ROWS = 3;

interface MissingPart {
  readonly what: string;
  /** Number of rows without the part. */
  readonly rows: number;
  /** Operations that are impossible without the part, and how to provide it. */
  readonly effect: string;
  /** Column of this name in the file that the map does not use. */
  readonly column?: string;
}

export interface LogPreview extends Pick<RoutingMeta, "rows" | "units" | "labelled" | "with_propensity"> {
  readonly file: string;
  readonly format: LogOptions["format"];
  readonly first: readonly LoggedRow[];
  /** Number of choices of each candidate. */
  readonly chosen: Readonly<Record<string, number>>;
  readonly missing: readonly MissingPart[];
  /** Reasons that make the log unfit for training or evaluation. */
  readonly warnings: readonly string[];
  /** Assumptions made where the file is ambiguous. */
  readonly notes: readonly string[];
  /** Columns of the file that the map does not use. */
  readonly unread: readonly string[];
}

/** Reads the whole file, so that a bad row is found before the import. */
export async function previewLog(file: string, options: LogOptions): Promise<LogPreview> {
  const tally = new MetaTally();
  const first: LoggedRow[] = [];
  const chosen: Record<string, number> = {};
  const without = new Map<string, number>();
  const notes: string[] = [];
  for await (const row of readLog(file, { ...options, onNote: (note) => notes.push(note) })) {
    tally.add(row);
    if (first.length < SHOWN_ROWS) first.push(row);
    for (const { id } of row.candidates) chosen[id] ??= 0;
    chosen[row.candidates[row.chosen]!.id]!++;
    for (const [what, { lacks }] of PARTS) if (lacks(row)) without.set(what, (without.get(what) ?? 0) + 1);
  }
  const { rows, units, candidates, labelled, with_propensity, least_propensity } = tally.meta({});
  const warnings = logWarnings({
    ...{
      rows,
      units,
      candidates,
      leastPropensity: least_propensity,
      isFull: tally.isFull,
      purpose: "dataset",
    },
  });
  const unread = await unreadColumns(file, options);
  const missing = PARTS.flatMap(([what, { map, ofOutcomes, ...rule }]) => {
    const effect = options.format === "outcomes" ? (ofOutcomes ?? rule.effect) : rule.effect;
    const lacking = without.get(what);
    if (lacking === undefined) return [];
    if (map === undefined || lacking < rows) return [{ what, rows: lacking, effect }];
    const isColumn = unread.includes(what);
    const hint = isColumn ? `The log has a column of this name: map it with ${what}=${what}.` : map;
    return [{ what, rows: lacking, effect: `${effect} ${hint}`, ...(isColumn ? { column: what } : {}) }];
  });
  return {
    ...{ file, format: options.format, rows, units, labelled, with_propensity },
    ...{ first, chosen, missing, warnings, notes, unread },
  };
}

/** `map` is advice on mapping the part, if it is a key of the map. */
type PartRule = {
  readonly lacks: (row: LoggedRow) => boolean;
  readonly effect: string;
  /** Effect in a table with the outcomes of all candidates, if it is another. */
  readonly ofOutcomes?: string;
  readonly map?: string;
};

const PARTS: readonly (readonly [string, PartRule])[] = [
  [
    "reward",
    {
      lacks: ({ reward }) => reward === null,
      effect: "Rows without a reward neither train nor judge a policy, until feedback arrives.",
      map: "Map it with reward=…",
    },
  ],
  [
    "propensity",
    {
      // If the outcome of every candidate is known, no choice has to be weighted.
      lacks: ({ propensity, candidates }) =>
        propensity === null && candidates.some(({ outcome }) => outcome === undefined),
      effect:
        "`evaluate`, `gate`, `train csc` and --floor-risk need the probability of every choice. Other training from a file does not.",
      map: "Map it with propensity=…",
    },
  ],
  [
    "prompt",
    {
      lacks: ({ context }) => context.prompt === "",
      effect: "A policy then has no words to choose by.",
      map: "Map the question with prompt=… or messages=…",
    },
  ],
  [
    "cost",
    {
      lacks: ({ terms, candidates, ...row }) =>
        terms.cost === undefined &&
        spentOf({ ...row, candidates }) === undefined &&
        candidates.some(
          ({ features, outcome }) => features.price === undefined && outcome?.terms.cost === undefined,
        ),
      effect: "Cost is not judged.",
      map: "Map it with cost=…",
    },
  ],
  [
    "time",
    {
      lacks: ({ atMs }) => atMs === 0,
      effect: "Without times, --since leaves out every row, and a book does not keep the order of the rows.",
      map: "Map the column with time=…",
    },
  ],
  [
    "data source",
    {
      lacks: ({ source }) => source === "unknown",
      effect: "To import it into a book, add --data-source real, or --data-source synthetic.",
      ofOutcomes:
        "A book does not hold the outcomes of all candidates: write this table to a file with --out.",
    },
  ],
];

async function unreadColumns(file: string, { format, map }: LogOptions): Promise<string[]> {
  if (map === undefined || "outcomes" in map || !isTableFormat(format)) return [];
  const wanted = wantedColumns(map);
  const isRead = (column: string) =>
    wanted.some((name) => name === column || name.startsWith(`${column}.`) || name.startsWith(`${column}[`));
  return (await columnsOfTable(file, format)).filter((column) => !isRead(column));
}
