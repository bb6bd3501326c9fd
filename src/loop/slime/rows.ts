/** Checks the rows that a training run reads. In: a file of JSON Lines. Out: the same rows, one a line, and what is odd about
 *  them. The row's metadata is the agent's payload, so what cannot be one is refused here and not in the middle of a run. */
import { isObject, type Json, plural, RollbookError } from "../../base/index.ts";
import { readRow } from "../../collect/rollout/index.ts";
import { readJsonLines } from "../../convert/index.ts";

const FORM =
  'Write one object a line: {"prompt": …, "metadata": {…}}, with everything that the agent needs in metadata';

export async function checkedRows(file: string): Promise<{ text: string; rows: number; warnings: string[] }> {
  const lines: string[] = [];
  let [empty, first] = [0, ""];
  for await (const { value, place } of readJsonLines(file, `${FORM}.`)) {
    const where = `${file}:${place.line}`;
    checkRow(value as Record<string, Json>, where);
    const { warning } = readRow(value, { form: "slime", where });
    if (warning !== undefined && empty++ === 0) first = warning;
    lines.push(JSON.stringify(value));
  }
  if (lines.length === 0)
    throw new RollbookError("no-rows", { file }, `${file} holds no row. Write one JSON object a line.`);
  const warnings = empty === 0 ? [] : [`${first} (${empty} of ${plural(lines.length, "row")}). ${FORM}`];
  return { text: `${lines.join("\n")}\n`, rows: lines.length, warnings };
}

function checkRow(row: Record<string, Json>, where: string): void {
  const { prompt, metadata } = row;
  if (typeof prompt !== "string" && !isMessages(prompt))
    throw refused(where, "prompt is neither a text nor a list of messages. slime counts its tokens");
  if (metadata === undefined) return;
  if (!isObject(metadata))
    throw refused(
      where,
      `metadata is ${Array.isArray(metadata) ? "a list" : "no object"}. It is the agent's payload: an object`,
    );
  if (Object.hasOwn(metadata, "_rollout"))
    throw refused(
      where,
      "metadata holds _rollout, whose name is rollout_config now, and which Rollbook writes. Leave it out",
    );
}

function isMessages(value: Json | undefined): boolean {
  return (
    Array.isArray(value) &&
    value.length > 0 &&
    value.every((each) => isObject(each) && Object.hasOwn(each, "role"))
  );
}

function refused(where: string, what: string): RollbookError {
  return new RollbookError("bad-row", { where }, `${where}: ${what}.`);
}
