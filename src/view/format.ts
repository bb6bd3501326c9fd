/** Renders values as text for terminals and programs. Returns strings; the caller prints them. */
import { asSentence, printable, RollbookError } from "../base/index.ts";

export { figure, percent, plural, printable, short, thousands } from "../base/index.ts";

/** Renders one line of JSON. Bigints become decimal strings, as in every record. Terminal control characters are
 *  escaped, which is equivalent JSON. */
export function jsonLine(value: unknown): string {
  return jsonText(value);
}

/** Renders JSON over several lines, for people. */
export function prettyJson(value: unknown): string {
  return jsonText(value, 2);
}

function jsonText(value: unknown, indentation?: number): string {
  const plain = (_: string, each: unknown) => (typeof each === "bigint" ? each.toString() : each);
  return `${escapeSteering(JSON.stringify(value, plain, indentation))}\n`;
}

/** Escapes characters that JSON leaves unchanged: delete, the second range of control characters, separators, writing
 *  directions. */
function escapeSteering(json: string): string {
  return json.replace(
    /[\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g,
    (each) => `\\u${each.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

/** Splits text of records that may have several lines. */
export function textLines(text: string): string[] {
  return text.split(/\r\n|\r|\n/).map((line) => printable(line.replaceAll("\t", "  ")));
}

/** Colour functions; they return the text unchanged if colours are off. */
export interface Paint {
  bold(text: string): string;
  dim(text: string): string;
  red(text: string): string;
  green(text: string): string;
  yellow(text: string): string;
  cyan(text: string): string;
}

export function paint(color: boolean): Paint {
  const wrap = (code: number, end: number) => (text: string) =>
    color ? `\u001b[${code}m${text}\u001b[${end}m` : text;
  return {
    bold: wrap(1, 22),
    dim: wrap(2, 22),
    red: wrap(31, 39),
    green: wrap(32, 39),
    yellow: wrap(33, 39),
    cyan: wrap(36, 39),
  };
}

export interface TableColumn<Row> {
  readonly title: string;
  readonly align?: "right";
  cell(row: Row): string;
}

/** Lays out columns two spaces apart, as wide as their widest cell. */
export function table<Row>(rows: readonly Row[], columns: readonly TableColumn<Row>[]): string {
  const lines = [
    columns.map((each) => each.title),
    ...rows.map((row) => columns.map((each) => printable(each.cell(row)))),
  ];
  const widths = columns.map((_, c) => lines.reduce((most, line) => Math.max(most, line[c]!.length), 0));
  const render = (line: readonly string[]) =>
    line.map((cell, c) =>
      columns[c]!.align === "right" ? cell.padStart(widths[c]!) : cell.padEnd(widths[c]!),
    );
  return lines.map((line) => `${render(line).join("  ").trimEnd()}\n`).join("");
}

/** Leaves out each sentence that an earlier text has, as the remedies of several faults often do. Sentences with figures
 *  stay: they are facts about their own text. */
export function sayOnce(texts: readonly string[]): string[] {
  const said = new Set<string>();
  return texts.map((text) => {
    const [first, ...rest] = text.split(/(?<=\.) (?=[A-Z])/);
    const fresh = rest.filter((sentence) => {
      const isRepeated = said.has(sentence.replace(/\.$/, "")) && !/\d/.test(sentence);
      said.add(sentence.replace(/\.$/, ""));
      return !isRepeated;
    });
    return [first, ...fresh].join(" ");
  });
}

/** Joins lines that may contain text of records, and makes them safe to print. */
export function page(lines: readonly string[]): string {
  return lines.map((line) => `${printable(line)}\n`).join("");
}

export function indent(text: string, by: number): string {
  return text.replaceAll(/^(?=.)/gm, " ".repeat(by));
}

/** Renders an error for the command line: one line of prose, or one of JSON. Only a list of faults has several lines.
 *  Adds the stack only on request. */
export function renderError(error: unknown, options: { json: boolean; debug: boolean }): string {
  const known = error instanceof RollbookError ? error : foreignError(error);
  const stack = options.debug ? `${stackOf(error)}\n` : "";
  if (options.json) return jsonLine({ error: known.toJSON() }) + stack;
  return `error: ${messageLines(known.message).join("\n")} [${known.code}]\n${stack}`;
}

/** Further lines are indented: text of a file or a record cannot pose as a line of the program. */
function messageLines(message: string): string[] {
  const lines = message.split(/\s*[\r\n]\s*/).map(printable);
  return message.includes("\n  - ")
    ? lines.map((line, i) => (i === 0 ? line : `  ${line}`))
    : [lines.join(" ")];
}

function foreignError(error: unknown): RollbookError {
  const { code, message, path } = error as NodeJS.ErrnoException;
  if (code === "ENOENT" && path !== undefined)
    return new RollbookError(
      "no-file",
      { path },
      // A file is first written under a temporary name. If that path does not exist, its folder does not exist.
      path.endsWith(".part")
        ? `the folder of ${path.slice(0, -".part".length)} does not exist. Create it first.`
        : `${path} does not exist. Check the path.`,
    );
  if (code === "EISDIR")
    return new RollbookError("no-file", {}, `${path ?? "the input"} is a directory. Name a file in it.`);
  const name = typeof code === "string" ? code.toLowerCase() : "unexpected";
  return new RollbookError(
    name,
    {},
    `${asSentence(message ?? String(error))} Set ROLLBOOK_DEBUG=1 to see where.`,
  );
}

function stackOf(error: unknown): string {
  const lines: string[] = [];
  for (let each: unknown = error; each instanceof Error; each = each.cause)
    lines.push(each.stack ?? each.message);
  return lines.join("\ncaused by: ");
}

/** Time in UTC, as `2026-01-31 12:00:00`. */
export function timeText(atMs: number): string {
  return new Date(atMs).toISOString().slice(0, 19).replace("T", " ");
}
