/** RFC 8785 canonical JSON: one value, one text.
 *  In: plain JSON values. Out: the canonical text. Refuses values that JSON cannot carry exactly. */
import { scanCanonical } from "./canonical-scan.ts";
import { RollbookError } from "./errors.ts";

export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

/** Deeper input is refused. No legitimate record comes near this depth, and recursion must not overflow the stack. */
export const MAX_DEPTH = 128;

/** Properties whose value is `undefined` are absent, as in JSON.stringify. Every other non-JSON value is refused. */
export function canonicalize(value: unknown): string {
  return write(value, [], 0);
}

/** True if `text`, which parses to `value`, is byte for byte the canonical form of that value. */
export function isCanonical(text: string, value: unknown): boolean {
  if (!text.isWellFormed()) return false;
  const scanned = scanCanonical(text, MAX_DEPTH);
  if (scanned !== undefined) return scanned;
  try {
    return canonicalize(value) === text;
  } catch {
    return false;
  }
}

function write(value: unknown, path: (string | number)[], depth: number): string {
  switch (typeof value) {
    case "string":
      return writeString(value, path);
    case "number":
      if (!Number.isFinite(value))
        throw unsupported("non-finite-number", value, path, "is not a finite number");
      return value === 0 ? "0" : String(value);
    case "boolean":
      return value ? "true" : "false";
    case "object":
      break;
    default:
      throw unsupported("not-json", value, path, `is a ${typeof value}, which JSON cannot carry`);
  }
  if (value === null) return "null";
  if (depth >= MAX_DEPTH)
    throw unsupported("too-deep", MAX_DEPTH, path, `is nested more than ${MAX_DEPTH} levels deep`);
  return Array.isArray(value) ? writeArray(value, path, depth) : writeObject(value, path, depth);
}

/** Characters that JSON escapes, and surrogates, which may be unpaired. A string without them only needs quotes. */
const SPECIAL = /["\\\u0000-\u001f\ud800-\udfff]/;

function writeString(value: string, path: (string | number)[]): string {
  if (!SPECIAL.test(value)) return `"${value}"`;
  if (!value.isWellFormed())
    throw unsupported("lone-surrogate", value, path, "holds a lone surrogate and has no UTF-8 form");
  return JSON.stringify(value);
}

function writeArray(items: readonly unknown[], path: (string | number)[], depth: number): string {
  let out = "[";
  for (let i = 0; i < items.length; i++) {
    path.push(i);
    if (i > 0) out += ",";
    out += write(items[i], path, depth + 1);
    path.pop();
  }
  return `${out}]`;
}

function writeObject(object: object, path: (string | number)[], depth: number): string {
  const prototype = Object.getPrototypeOf(object);
  if (prototype !== Object.prototype && prototype !== null) {
    throw unsupported(
      "not-json",
      object.constructor?.name,
      path,
      `is a ${object.constructor?.name ?? "foreign object"}, not a plain object`,
    );
  }
  let out = "{";
  for (const key of sortKeys(Object.keys(object))) {
    const value = (object as Record<string, unknown>)[key];
    if (value === undefined) continue;
    path.push(key);
    if (out.length > 1) out += ",";
    out += `${writeString(key, path)}:${write(value, path, depth + 1)}`;
    path.pop();
  }
  return `${out}}`;
}

/** Above this number of keys, the built-in sort is used. */
const FEW_KEYS = 24;

/** RFC 8785 sorts keys by UTF-16 code units, as string comparison and the default sort do. For few keys, most of them
 *  in order, insertion sort makes no copies; the built-in sort makes two. */
function sortKeys(keys: string[]): string[] {
  if (keys.length > FEW_KEYS) return keys.sort();
  for (let i = 1; i < keys.length; i++) {
    const key = keys[i]!;
    let at = i;
    for (; at > 0 && keys[at - 1]! > key; at--) keys[at] = keys[at - 1]!;
    keys[at] = key;
  }
  return keys;
}

function unsupported(
  code: string,
  value: unknown,
  path: readonly (string | number)[],
  what: string,
): RollbookError {
  const at = `$${path.map((part) => (typeof part === "number" ? `[${part}]` : `.${part}`)).join("")}`;
  return new RollbookError(
    code,
    { path: at, value: String(value) },
    `${at} ${what}. Fix the value before sealing it.`,
  );
}
