/** Reads keys and types from documents. In: the documents of one command. Out: one row for each key, in the order of
 *  first use. Values are not kept, so the rows are the same on every machine. A key without a meaning is an error. */
import { DYNAMIC, MEANINGS, OPEN } from "./output-meanings.ts";

export interface OutputRow {
  readonly key: string;
  readonly type: string;
  readonly meaning: string;
}

export function outputRows(title: string, documents: readonly object[], prefix = ""): OutputRow[] {
  return [...valuesByKey(documents)].flatMap(([name, values]) => {
    const key = `${prefix}${name}`;
    const meaning = MEANINGS[`${title} ${key}`] ?? MEANINGS[key];
    if (meaning === undefined) throw new Error(`${key} of \`${title}\` has no meaning in output-meanings.ts`);
    if (!OPEN.has(`${title} ${key}`)) return [{ key, type: typeOf(key, values), meaning }];
    const isList = values.some(Array.isArray);
    const inner = outputRows(title, objectsIn(values), `${key}${isList ? "[]" : ""}.`);
    return [{ key, type: isList ? "list of object" : "object", meaning }, ...inner];
  });
}

function valuesByKey(documents: readonly object[]): Map<string, unknown[]> {
  const found = new Map<string, unknown[]>();
  for (const each of documents)
    for (const [name, value] of Object.entries(each)) found.set(name, [...(found.get(name) ?? []), value]);
  return found;
}

/** `number or null`; `list of objects: low, high`; `record rollbook.task.v1`. */
function typeOf(key: string, values: readonly unknown[]): string {
  const kinds = new Set(values.map(kindOf));
  const texts = [...kinds].filter((kind) => kind !== "null").sort();
  if (kinds.has("null")) texts.push("null");
  return texts.map((kind) => detailed(kind, key, values)).join(" or ");
}

function kindOf(value: unknown): string {
  if (value === null) return "null";
  return Array.isArray(value) ? "list" : typeof value;
}

function detailed(kind: string, key: string, values: readonly unknown[]): string {
  if (kind === "object") return objectType(key, objectsIn(values));
  if (kind !== "list") return kind;
  const elements = values.filter(Array.isArray).flat();
  return elements.length === 0 ? "list" : `list of ${typeOf(key, elements)}`;
}

function objectType(key: string, objects: readonly object[]): string {
  const byKey = valuesByKey(objects);
  const schemas = new Set(byKey.get("schema"));
  if (schemas.size > 0) return `record ${[...schemas].map((each) => `\`${each}\``).join(", ")}`;
  if (DYNAMIC.has(key)) return `by name: ${typeOf("", [...byKey.values()].flat())}`;
  return byKey.size === 0 ? "object" : `object: ${[...byKey.keys()].map((each) => `\`${each}\``).join(", ")}`;
}

function objectsIn(values: readonly unknown[]): object[] {
  return values.flat().filter((each): each is object => kindOf(each) === "object");
}
