/** Puts streamed deltas of OpenAI replies together: text grows, lists of indexed parts merge by index, lists of
 *  numbers and records are appended, everything else is replaced by the latest. */
import { define, isObject, type JsonObject } from "./json.ts";

/** Said once per part; a repetition is the same word again, not more of it. */
const WORDS: ReadonlySet<string> = new Set([
  "role",
  "id",
  "type",
  "index",
  "object",
  "finish_reason",
  "model",
]);

export function mergeDelta(target: JsonObject, delta: JsonObject): void {
  for (const key in delta) {
    const value = delta[key];
    if (value === undefined || value === null) {
      if (!Object.hasOwn(target, key)) define(target, key, value);
      continue;
    }
    define(target, key, merged(Object.hasOwn(target, key) ? target[key] : undefined, value, key));
  }
}

function merged(old: unknown, value: unknown, key: string): unknown {
  if (typeof value === "string" && typeof old === "string" && !WORDS.has(key)) return old + value;
  if (Array.isArray(value)) {
    const list = Array.isArray(old) ? old : [];
    for (const item of value) addItem(list, item);
    return list;
  }
  if (isObject(value)) {
    const object = isObject(old) ? old : {};
    mergeDelta(object, value);
    return object;
  }
  return value;
}

function addItem(list: unknown[], item: unknown): void {
  if (!isObject(item)) {
    list.push(item);
    return;
  }
  const known =
    typeof item.index === "number"
      ? list.find((each): each is JsonObject => isObject(each) && each.index === item.index)
      : undefined;
  if (known !== undefined) {
    mergeDelta(known, item);
    return;
  }
  const fresh: JsonObject = {};
  mergeDelta(fresh, item);
  list.push(fresh);
}
