/** Says what is wrong with a configuration, in words. In: a schema, the issues it found, the value. Out: one sentence
 *  without a full stop. An unknown key comes first, with the nearest name: a key that is missing is often misspelt. */
import * as z from "zod";
import { nearestName } from "../../base/index.ts";

export function configProblem(
  schema: z.core.$ZodType,
  issues: readonly z.core.$ZodIssue[],
  value: unknown,
): string {
  const issue = issues.find(({ code }) => code === "unrecognized_keys") ?? issues[0]!;
  const place = issue.path.map(String).join(".");
  if (issue.code === "invalid_type") return wrongType(issue, place, value);
  if (issue.code === "invalid_value")
    return `${place === "" ? "it" : place} must be ${issue.values.map(quoted).join(" or ")}`;
  if ((issue.code === "too_big" || issue.code === "too_small") && issue.origin === "number") {
    const { code, inclusive } = issue;
    const bound =
      code === "too_big"
        ? `${inclusive ? "at most" : "below"} ${issue.maximum}`
        : `${inclusive ? "at least" : "above"} ${issue.minimum}`;
    return `${place} must be ${bound}`;
  }
  if (issue.code !== "unrecognized_keys") {
    const message = `${issue.message[0]!.toLowerCase()}${issue.message.slice(1)}`;
    return place === "" ? message : `${place}: ${message}`;
  }
  const known = keysAt(schema, issue.path, value);
  const [unknown = ""] = issue.keys;
  const meant = nearestName(unknown, known);
  const name = place === "" ? unknown : `${place}.${unknown}`;
  return `unknown key ${name}. ${meant === undefined ? `Known keys: ${known.join(", ")}` : `Did you mean ${meant}?`}`;
}

function quoted(value: unknown): string {
  return typeof value === "string" ? JSON.stringify(value) : String(value);
}

function wrongType({ expected, path }: z.core.$ZodIssueInvalidType, place: string, value: unknown): string {
  const kind = KINDS[expected] ?? expected;
  const given = path.reduce<unknown>((at, part) => (at as Record<PropertyKey, unknown>)[part], value);
  if (given !== undefined) {
    const found = Array.isArray(given) ? "array" : given === null ? "null" : typeof given;
    return `${place === "" ? "it" : place} must be ${kind}, and is ${KINDS[found] ?? found}`;
  }
  const isEmpty = typeof value === "object" && value !== null && Object.keys(value).length === 0;
  return `${isEmpty ? "it is empty; " : ""}${place} is missing, and must be ${kind}`;
}

/** Types as a person who writes YAML calls them. */
const KINDS: Readonly<Record<string, string>> = {
  record: "an object with keys",
  object: "an object with keys",
  array: "a list",
  string: "a text",
  number: "a number",
  int: "a whole number",
  boolean: "true or false",
  null: "empty",
};

/** The names that the object at a path may hold. */
function keysAt(schema: z.core.$ZodType, path: readonly PropertyKey[], value: unknown): string[] {
  let [at, here] = [chosen(schema, value), value];
  for (const part of path) {
    here = (here as Record<PropertyKey, unknown> | undefined)?.[part];
    if (at instanceof z.ZodObject) at = chosen(at.shape[String(part)], here);
    else at = chosen(at instanceof z.ZodArray ? at.element : (at as z.ZodRecord).valueType, here);
  }
  return at instanceof z.ZodObject ? Object.keys(at.shape) : [];
}

/** The schema without defaults; of a union, the member whose `kind` the value has, else its object. */
function chosen(schema: z.core.$ZodType, value: unknown): z.core.$ZodType {
  const { innerType, options } = (
    schema as unknown as { def: { innerType?: z.core.$ZodType; options?: z.core.$ZodType[] } }
  ).def;
  if (innerType !== undefined) return chosen(innerType, value);
  if (options === undefined) return schema;
  const kind = (value as { kind?: unknown } | undefined)?.kind;
  const objects = options.filter((each) => each instanceof z.ZodObject);
  return objects.find(({ shape }) => shape.kind?.safeParse(kind).success) ?? objects[0] ?? schema;
}
