/** Safe reads of untrusted JSON. In: a value and a key. Out: the field if it has the wanted type, otherwise
 *  undefined. */
import { isObject } from "../../../base/index.ts";

export { isObject };

export type JsonObject = Record<string, unknown>;

export function objectAt(value: unknown, key: string): JsonObject | undefined {
  const found = isObject(value) ? value[key] : undefined;
  return isObject(found) ? found : undefined;
}

export function listAt(value: unknown, key: string): unknown[] | undefined {
  const found = isObject(value) ? value[key] : undefined;
  return Array.isArray(found) ? found : undefined;
}

export function textAt(value: unknown, key: string): string | undefined {
  const found = isObject(value) ? value[key] : undefined;
  return typeof found === "string" ? found : undefined;
}

export function countAt(value: unknown, key: string): number | undefined {
  const found = isObject(value) ? value[key] : undefined;
  return Number.isSafeInteger(found) && (found as number) >= 0 ? (found as number) : undefined;
}

/** An array of token ids (u32). Undefined if any element is not a token id. */
export function tokenIdsAt(value: unknown, key: string): number[] | undefined {
  const found = listAt(value, key);
  return found?.every((each) => typeof each === "number" && each >>> 0 === each)
    ? (found as number[])
    : undefined;
}

/** A copy of the object without the given keys. */
export function without(value: JsonObject, keys: ReadonlySet<string>): JsonObject {
  const out: JsonObject = {};
  for (const key in value) if (!keys.has(key)) define(out, key, value[key]);
  return out;
}

/** Sets an own property, also for the key `__proto__`. */
export function define(target: JsonObject, key: string, value: unknown): void {
  if (key === "__proto__")
    Object.defineProperty(target, key, { value, enumerable: true, configurable: true, writable: true });
  else target[key] = value;
}

/** Deeper text is not parsed: a million brackets would fill the memory, and recursion would end the process. No
 *  format nests this deep. */
export const MAX_NESTING = 512;

/** True if brackets nest deeper than `levels`. Does not parse the text. */
export function nestsDeeper(text: string, levels = MAX_NESTING): boolean {
  // Every level takes two characters.
  if (text.length <= 2 * levels) return false;
  let depth = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) {
      at = endOfString(text, at);
      if (at < 0) return false;
    } else if (code === OPEN_BRACE || code === OPEN_BRACKET) {
      if (++depth > levels) return true;
    } else if (code === CLOSE_BRACE || code === CLOSE_BRACKET) depth--;
  }
  return false;
}

const [QUOTE, BACKSLASH, OPEN_BRACKET, CLOSE_BRACKET, OPEN_BRACE, CLOSE_BRACE] = [34, 92, 91, 93, 123, 125];

/** Index of the closing quote, or -1 if there is none. */
function endOfString(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); end >= 0; end = text.indexOf('"', end + 1)) {
    let slashes = 0;
    while (text.charCodeAt(end - 1 - slashes) === BACKSLASH) slashes++;
    if (slashes % 2 === 0) return end;
  }
  return -1;
}

/** Undefined if the text is not JSON, or nests too deep. */
export function tryParse(text: string): unknown {
  if (nestsDeeper(text)) return undefined;
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}
