/** Records of a CSV file (RFC 4180: quoted fields may hold commas, quotes and line breaks), streamed; and tables, which
 *  are records below a header. If the first line has no comma, semicolons or tabs separate the fields. */
import { badRow, type LinePlace } from "./foreign-decision.ts";
import { readLines } from "./text-lines.ts";

export interface CsvRecord {
  readonly fields: readonly string[];
  /** Line on which the record begins. */
  readonly line: number;
}

/** Bounds a record: a quoted field that never closes would otherwise read the whole file. */
const MAX_RECORD_CHARS = 16 * 1024 * 1024;

export async function* readCsv(file: string): AsyncGenerator<CsvRecord> {
  let open: OpenRecord | undefined;
  let start = 0;
  let chars = 0;
  let separator: string | undefined;
  for await (const { text, line } of readLines(file)) {
    separator ??= [",", ";", "\t"].find((each) => text.includes(each)) ?? ",";
    if (open === undefined) {
      if (!text.includes('"')) {
        const bare = text.endsWith("\r") ? text.slice(0, -1) : text;
        if (bare !== "") yield { fields: bare.split(separator), line };
        continue;
      }
      start = line;
      chars = 0;
    }
    chars += text.length + 1;
    if (chars > MAX_RECORD_CHARS)
      throw badRow({ file, line: start }, "a quoted field does not end", "Close the quote");
    const split: OpenRecord | { readonly fields: string[] } = splitQuoted(text, {
      ...{ place: { file, line: start }, separator, open },
    });
    open = "value" in split ? split : undefined;
    if (open === undefined) yield { fields: split.fields, line: start };
  }
  if (open !== undefined)
    throw badRow({ file, line: start }, "a quoted field does not end", "Close the quote");
}

/** A record whose last field has an open quote: the fields before it, and its text so far. */
interface OpenRecord {
  readonly fields: string[];
  readonly value: string;
}

/** Continues from `open`, so that a field over many lines is scanned only once. */
function splitQuoted(
  text: string,
  { place, separator, open }: { place: LinePlace; separator: string; open: OpenRecord | undefined },
): OpenRecord | { readonly fields: string[] } {
  const fields = open?.fields ?? [];
  let resumed = open?.value;
  let at = 0;
  for (;;) {
    if (resumed !== undefined || text[at] === '"') {
      let value = resumed ?? "";
      let from = resumed === undefined ? at + 1 : at;
      resumed = undefined;
      for (;;) {
        const quote = text.indexOf('"', from);
        if (quote < 0) return { fields, value: `${value}${text.slice(from)}\n` };
        value += text.slice(from, quote);
        at = quote + 1;
        if (text[at] !== '"') break;
        value += '"';
        from = at + 1;
      }
      fields.push(value);
      if (text[at] === "\r" && at === text.length - 1) at++;
      if (at < text.length && text[at] !== separator)
        throw badRow(
          place,
          `field ${fields.length} goes on after its closing quote`,
          "Double the quotes inside fields",
        );
    } else {
      const next = text.indexOf(separator, at);
      const end = next < 0 ? text.length : next;
      fields.push(next < 0 && text.endsWith("\r") ? text.slice(at, -1) : text.slice(at, end));
      at = end;
    }
    if (at >= text.length) return { fields };
    at++;
  }
}

/** The rows below a header line. `parserOf` makes a parser from the header (name → position).
 *  A missing `needed` column, or a row whose length differs from the header, throws with its place. */
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
        "Quote fields that hold a separator, or restore the row",
      );
    yield parse(record);
  }
}

/** Maps names to positions. A missing or repeated name is an error. */
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
