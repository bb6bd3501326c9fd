/** JSON objects, one per line of a file. Blank lines are skipped. A line with anything else throws with its place. */
import { isObject, type Json, parseJson } from "../base/index.ts";
import { badRow, type LinePlace } from "./foreign-decision.ts";
import { readLines } from "./text-lines.ts";

export type JsonFields = { readonly [key: string]: Json | undefined };

/** `remedy` states the expected content of a line. */
export async function* readJsonLines(
  file: string,
  remedy: string,
): AsyncGenerator<{ readonly value: JsonFields; readonly place: LinePlace }> {
  for await (const { text, line } of readLines(file)) {
    if (text.trim() === "") continue;
    const place = { file, line };
    const value = parseJson(text, `${file}:${line}`);
    if (!isObject(value)) throw badRow(place, "is not a JSON object", remedy);
    yield { value, place };
  }
}
