/** The tables of docs/reference/replay-format.md, from the schema. Run `npx tsx scripts/replay-tables.ts` to write them; a test
 *  compares. In: the schema. Out: Markdown. */
import { readFileSync, writeFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { type ColumnSpec, TABLE_NAMES, tableOf } from "../src/keep/replay/tables/schema.ts";

export const PAGE = "docs/reference/replay-format.md";
const [BEGIN, END] = ["<!-- tables: begin -->", "<!-- tables: end -->"];

export function replayTables(): string {
  return TABLE_NAMES.map((table) => {
    const { doc, dimension, columns } = tableOf(table);
    const rows = Object.entries(columns).map(
      ([name, spec]) => `| \`${name}\` | ${typeOf(spec)} | ${leadsTo(spec)} | ${spec.doc} |`,
    );
    return `### ${table}\n\n${doc} Dimension \`${dimension}\`.\n\n| column | type | refers to | meaning |\n| --- | --- | --- | --- |\n${rows.join("\n")}\n`;
  }).join("\n");
}

/** The page with `tables` between its marks. */
export function withTables(page: string, tables: string): string {
  const [begin, end] = [page.indexOf(BEGIN), page.indexOf(END)];
  if (begin < 0 || end < begin) throw new Error(`${PAGE} lacks the marks ${BEGIN} and ${END}`);
  return `${page.slice(0, begin + BEGIN.length)}\n\n${tables}\n${page.slice(end)}`;
}

export function tablesOf(page: string): string {
  return page.slice(page.indexOf(BEGIN) + BEGIN.length, page.indexOf(END));
}

function typeOf({ dtype, row, pad }: ColumnSpec): string {
  const shape = row === undefined ? "" : ` [${row.join()}]`;
  return `${dtype}${shape}${pad === undefined ? "" : ` [candidate], padded with ${pad}`}`;
}

function leadsTo({ references, starts, count, dictionary, optional }: ColumnSpec): string {
  const target = dictionary ? "dictionary" : references;
  if (starts !== undefined) return `range of ${starts}, with \`${count}\``;
  return target === undefined ? "" : `${target}${optional ? ", or -1" : ""}`;
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href)
  writeFileSync(PAGE, withTables(readFileSync(PAGE, "utf8"), replayTables()));
