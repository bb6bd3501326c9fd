/** Renders the preview of an import for a terminal. */
import type { LogPreview } from "../../book/decisions/index.ts";
import { figure, page, plural } from "../format.ts";

type PreviewRow = LogPreview["first"][number];

/** Maximum length of a prompt or a list: more would hide the rest of the row. */
const SHOWN_CHARS = 100;

export function renderPreview(preview: LogPreview): string {
  const { file, format, rows, units, chosen, missing, warnings, notes, unread } = preview;
  const counts = Object.entries(chosen).map(([id, count]) => `${id} ${count}`);
  return page([
    ...preview.first.flatMap((row, i) => rowLines(row, i)),
    "",
    `${file} as ${format}: ${plural(rows, "row")} of ${plural(units, "task")}; chosen: ${cut(counts.join(", "))}`,
    ...(missing.length === 0
      ? ["the log has everything that training and judging can use"]
      : missing.map((each) => missingLine(each, rows))),
    ...warnings.map((each) => `warning: ${each}`),
    ...notes.map((each) => `note: ${each}`),
    ...(unread.length === 0 ? [] : [`columns that the map does not name: ${cut(unread.join(", "))}`]),
    "dry run: nothing was written",
  ]);
}

function rowLines(row: PreviewRow, index: number): string[] {
  const { candidates, chosen, propensity, reward, context, terms } = row;
  const facts = [
    ["id", row.id],
    ["task", row.task === row.id ? undefined : row.task],
    ["session", row.session],
    ["time", row.atMs === 0 ? undefined : new Date(row.atMs).toISOString()],
    ["prompt", context.prompt === "" ? undefined : JSON.stringify(cut(context.prompt))],
    ["model", `${candidates[chosen]!.id} of ${cut(candidates.map(({ id }) => id).join(", "))}`],
    ["propensity", propensity === null ? "missing" : figure(propensity)],
    ["reward", reward === null ? "missing" : figure(reward)],
    [
      "terms",
      listed(
        Object.entries(terms).map(
          ([name, { value, weight }]) => `${name} ${figure(value)} (weight ${figure(weight)} in the reward)`,
        ),
      ),
    ],
    ["features", listed(Object.entries(context.fields).map(([name, value]) => `${name} ${value}`))],
  ] as const;
  return [
    `row ${index + 1}`,
    ...facts.flatMap(([name, value]) => (value === undefined ? [] : [`  ${name.padEnd(10)}  ${value}`])),
  ];
}

function missingLine({ what, rows, effect, column }: LogPreview["missing"][number], all: number): string {
  return `${column === undefined ? "not in the log" : "not mapped"}: ${what}${rows === all ? "" : ` in ${plural(rows, "row")}`}. ${effect}`;
}

function listed(texts: readonly string[]): string | undefined {
  return texts.length === 0 ? undefined : cut(texts.join(", "));
}

function cut(text: string): string {
  return text.length <= SHOWN_CHARS ? text : `${text.slice(0, SHOWN_CHARS)}…`;
}
