/** Careful looks into JSON from outside: the value if it is of the wanted type, else undefined. */
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

/** An array of token ids (u32), or undefined if anything else stands in it. */
export function tokenIdsAt(value: unknown, key: string): number[] | undefined {
  const found = listAt(value, key);
  return found?.every((each) => typeof each === "number" && each >>> 0 === each)
    ? (found as number[])
    : undefined;
}

/** The object without some of its keys. */
export function without(value: JsonObject, keys: ReadonlySet<string>): JsonObject {
  const out: JsonObject = {};
  for (const key in value) if (!keys.has(key)) define(out, key, value[key]);
  return out;
}

/** An own property even where the key is `__proto__`. */
export function define(target: JsonObject, key: string, value: unknown): void {
  if (key === "__proto__")
    Object.defineProperty(target, key, { value, enumerable: true, configurable: true, writable: true });
  else target[key] = value;
}

/** Text that nests deeper is not parsed: a million brackets would fill the memory, and recursion end the process. Deeper
 *  than any format goes. */
export const MAX_NESTING = 512;

/** Whether brackets nest deeper than `levels`, found without parsing. */
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

/** The closing quote, or -1 if there is none. */
function endOfString(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); end >= 0; end = text.indexOf('"', end + 1)) {
    let slashes = 0;
    while (text.charCodeAt(end - 1 - slashes) === BACKSLASH) slashes++;
    if (slashes % 2 === 0) return end;
  }
  return -1;
}

/** Undefined where the text is no JSON, or nests too deep. */
export function tryParse(text: string): unknown {
  if (nestsDeeper(text)) return undefined;
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}
