/** Records of a CSV file (RFC 4180: quoted fields may hold commas, quotes and line breaks), streamed; and tables, which are
 *  records below a header. */
import { badRow, type LinePlace } from "./foreign-decision.ts";
import { readLines } from "./text-lines.ts";

export interface CsvRecord {
  readonly fields: readonly string[];
  /** Line on which the record begins. */
  readonly line: number;
}

/** A quoted field that never closes would swallow the file: it stops here. */
const MAX_RECORD_CHARS = 16 * 1024 * 1024;

export async function* readCsv(file: string): AsyncGenerator<CsvRecord> {
  let open = "";
  let start = 0;
  for await (const { text, line } of readLines(file)) {
    if (open === "") {
      if (!text.includes('"')) {
        const bare = text.endsWith("\r") ? text.slice(0, -1) : text;
        if (bare !== "") yield { fields: bare.split(","), line };
        continue;
      }
      start = line;
      open = text;
    } else {
      open += `\n${text}`;
    }
    if (open.length > MAX_RECORD_CHARS)
      throw badRow({ file, line: start }, "a quoted field does not end", "Close the quote");
    const fields = splitQuoted(open, { file, line: start });
    if (fields === undefined) continue;
    yield { fields, line: start };
    open = "";
  }
  if (open !== "") throw badRow({ file, line: start }, "a quoted field does not end", "Close the quote");
}

/** Undefined while a quote is open at the end of `text`. */
function splitQuoted(text: string, place: LinePlace): string[] | undefined {
  const fields: string[] = [];
  let at = 0;
  for (;;) {
    if (text[at] === '"') {
      let value = "";
      let from = at + 1;
      for (;;) {
        const quote = text.indexOf('"', from);
        if (quote < 0) return undefined;
        value += text.slice(from, quote);
        at = quote + 1;
        if (text[at] !== '"') break;
        value += '"';
        from = at + 1;
      }
      fields.push(value);
      if (text[at] === "\r" && at === text.length - 1) at++;
      if (at < text.length && text[at] !== ",")
        throw badRow(
          place,
          `field ${fields.length} goes on after its closing quote`,
          "Double the quotes inside fields",
        );
    } else {
      const comma = text.indexOf(",", at);
      const end = comma < 0 ? text.length : comma;
      fields.push(comma < 0 && text.endsWith("\r") ? text.slice(at, -1) : text.slice(at, end));
      at = end;
    }
    if (at >= text.length) return fields;
    at++;
  }
}

/** The rows below a header line, each parsed by what `parserOf` makes of the header (name → position).
 *  A `needed` column that is missing, and a row of another length than the header, stop with their place. */
export async function* readTable<Row>(
  file: string,
  needed: readonly string[],
  parserOf: (header: ReadonlyMap<string, number>) => (record: CsvRecord) => Row,
): AsyncGenerator<Row> {
  let columns = 0;
  let parse: ((record: CsvRecord) => Row) | undefined;
  for await (const record of readCsv(file)) {
    if (parse === undefined) {
      columns = record.fields.length;
      parse = parserOf(headerOf(record, file, needed));
      continue;
    }
    if (record.fields.length !== columns)
      throw badRow(
        { file, line: record.line },
        `${record.fields.length} fields, the header has ${columns}`,
        "Quote fields that hold commas, or restore the row",
      );
    yield parse(record);
  }
}

/** Names → positions; a missing or doubled name is an error. */
function headerOf(record: CsvRecord, file: string, needed: readonly string[]): ReadonlyMap<string, number> {
  const places = new Map<string, number>();
  record.fields.forEach((name, i) => {
    if (places.has(name))
      throw badRow({ file, line: record.line }, `column ${JSON.stringify(name)} occurs twice`, "Rename one");
    places.set(name, i);
  });
  const missing = needed.filter((name) => !places.has(name));
  if (missing.length === 0) return places;
  throw badRow(
    { file, line: record.line },
    `the header has no column ${missing.map((name) => JSON.stringify(name)).join(", ")}`,
    `It has: ${record.fields.join(", ").slice(0, 400)}`,
  );
}
