/** Checks the rows that a training run reads.
 *  In: a file of JSON Lines. Out: the same rows, one per line, and warnings. The row's metadata is the agent's payload.
 *  Invalid metadata is refused here, not in the middle of a run. */
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
    requirePrompt(value as Record<string, Json>, where);
    const { warning } = readRow(value, { form: "slime", where });
    if (warning !== undefined && empty++ === 0) first = warning;
    lines.push(JSON.stringify(value));
  }
  if (lines.length === 0)
    throw new RollbookError("no-rows", { file }, `${file} holds no row. Write one JSON object a line.`);
  const warnings = empty === 0 ? [] : [`${first} (${empty} of ${plural(lines.length, "row")}). ${FORM}`];
  return { text: `${lines.join("\n")}\n`, rows: lines.length, warnings };
}

function requirePrompt({ prompt }: Record<string, Json>, where: string): void {
  if (typeof prompt === "string" || isMessages(prompt)) return;
  throw new RollbookError(
    "bad-row",
    { where, field: "prompt" },
    `${where}: prompt is neither a text nor a list of messages. slime counts its tokens. ${FORM}.`,
  );
}

function isMessages(value: Json | undefined): boolean {
  return (
    Array.isArray(value) &&
    value.length > 0 &&
    value.every((each) => isObject(each) && Object.hasOwn(each, "role"))
  );
}
