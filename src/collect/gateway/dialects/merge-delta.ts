/** Merges streamed deltas of OpenAI replies. In: deltas. Out: the merged object. Text is appended, lists of indexed
 *  parts merge by index, lists of numbers and records are appended. The latest value replaces any other value. */
import { define, isObject, type JsonObject } from "./json.ts";

/** Fields that are sent whole. A repetition replaces the text instead of extending it. */
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
  const { index } = item;
  const known = typeof index === "number" ? itemAt(list, index) : undefined;
  if (known !== undefined) {
    mergeDelta(known, item);
    return;
  }
  const fresh: JsonObject = {};
  mergeDelta(fresh, item);
  list.push(fresh);
  if (typeof index === "number") ITEMS.get(list)?.set(index, fresh);
}

/** Items of long lists by index: a stream may have thousands of items and names one in every event. */
const ITEMS = new WeakMap<unknown[], Map<number, JsonObject>>();
const LONG = 16;

function itemAt(list: unknown[], index: number): JsonObject | undefined {
  if (list.length < LONG)
    return list.find((each): each is JsonObject => isObject(each) && each.index === index);
  let items = ITEMS.get(list);
  if (items === undefined) {
    items = new Map();
    for (const each of list)
      if (isObject(each) && typeof each.index === "number" && !items.has(each.index))
        items.set(each.index, each);
    ITEMS.set(list, items);
  }
  return items.get(index);
}
