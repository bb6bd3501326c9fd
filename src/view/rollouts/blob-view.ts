/** Renders a blob for a terminal.
 *  In: its kind and bytes. Out: text, or undefined if the bytes are neither a column nor text. */
import { columnFrom, columnTag, type DType, ITEM_BYTES } from "../../base/index.ts";
import { prettyJson, textLines, thousands } from "../format.ts";

/** Maximum count of numbers of a column that a terminal shows. */
const MOST_NUMBERS = 1000;

export function renderBlob(kind: string, bytes: Uint8Array): string | undefined {
  const dtype = (Object.keys(ITEM_BYTES) as DType[]).find((each) => columnTag(each) === kind);
  if (dtype !== undefined) return columnText(dtype, bytes);
  const text = decode(bytes);
  if (text === undefined) return undefined;
  try {
    return prettyJson(JSON.parse(text));
  } catch {
    return `${textLines(text).join("\n")}\n`;
  }
}

function columnText(dtype: DType, bytes: Uint8Array): string {
  const values = columnFrom(dtype, bytes);
  const shown = Array.from(values.subarray(0, MOST_NUMBERS), String).join(" ");
  const more = values.length > MOST_NUMBERS ? ` … ${thousands(values.length - MOST_NUMBERS)} more` : "";
  return `${shown}${more}\n`;
}

function decode(bytes: Uint8Array): string | undefined {
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    return text.includes("\0") ? undefined : text;
  } catch {
    return undefined;
  }
}
