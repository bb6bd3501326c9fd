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

export function tryParse(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}
