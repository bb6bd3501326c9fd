/** Identifiers: the names of records. Identifiers appear in file names, digests of other systems, and terminals.
 *  Separators, control characters and invisible characters at either end are therefore refused. */
import { RollbookError } from "./errors.ts";

export type Id = string & { readonly __brand: "Id" };

export const MAX_ID_BYTES = 256;

/** Matches almost every id, without the slower checks below. */
const PLAIN = /^[A-Za-z0-9_][A-Za-z0-9_.:+-]{0,127}$/;

/** Reason why `text` is not a valid id, or undefined if it is valid. */
export function idFault(text: string): string | undefined {
  if (PLAIN.test(text)) return undefined;
  if (text.length === 0) return "is empty";
  if (!text.isWellFormed()) return "holds a lone surrogate";
  if (Buffer.byteLength(text) > MAX_ID_BYTES) return `is longer than ${MAX_ID_BYTES} bytes`;
  if (/[@|/\\]/.test(text)) return "holds one of @ | / \\";
  if (/[\p{Cc}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/u.test(text))
    return "holds a control or invisible character";
  if (text !== text.trim()) return "begins or ends with a space";
  if (text === "." || text === ".." || text.startsWith("..")) return "looks like a path";
  return undefined;
}

export function parseId(text: string, field = "id"): Id {
  const fault = idFault(text);
  if (fault === undefined) return text as Id;
  throw new RollbookError(
    "bad-id",
    { field, value: text },
    `${field} ${JSON.stringify(text.slice(0, 80))} ${fault}. Choose another: letters, digits, - and _ are always allowed`,
  );
}

/** Compares by UTF-8 bytes, which is code point order. UTF-16 order differs beyond the basic plane. */
export function compareUtf8(a: string, b: string): number {
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i++) {
    const x = a.charCodeAt(i);
    const y = b.charCodeAt(i);
    if (x !== y) return rank(x) - rank(y);
  }
  return a.length - b.length;
}

/** Surrogates (code points past U+FFFF) sort after every other code unit. */
function rank(unit: number): number {
  return unit >= 0xd800 && unit <= 0xdfff ? unit + 0x10000 : unit;
}
