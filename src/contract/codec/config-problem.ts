/** Describes a configuration error in words. In: a schema, the issues it found, the value. Out: one sentence without a
 *  full stop, and the places of further errors. An unknown key comes first, with the nearest name, because a missing key
 *  is often misspelt. */
import * as z from "zod";
import { asSentence, nearestName } from "../../base/index.ts";
import { deepest, issueWords, valueAt } from "./issue-words.ts";

/** `otherFile`: a key that only another kind of file has, and the problem if this file has it. */
export function configProblem(
  schema: z.core.$ZodType,
  issues: readonly z.core.$ZodIssue[],
  value: unknown,
  otherFile?: { readonly key: string; readonly problem: string },
): string {
  const unknown = issues.find((issue) => issue.code === "unrecognized_keys");
  if (otherFile !== undefined && unknown?.path.length === 0 && unknown.keys.includes(otherFile.key))
    return otherFile.problem;
  const first = unknown ?? issues[0]!;
  const problem = problemOf(schema, unknown ?? deepest(issues), value);
  // A missing key is often the misspelt one.
  const others = issues.filter(
    (each) => each !== first && (unknown === undefined || valueAt(value, each.path) !== undefined),
  );
  const [told, ...beside] = placesOf(first);
  const places = [...new Set([...beside, ...others.flatMap(placesOf)])].filter(
    (place) => place !== "" && place !== told,
  );
  return places.length === 0 ? problem : `${asSentence(problem)} Also wrong: ${places.join(", ")}`;
}

/** One issue holds all unknown keys of an object. */
function placesOf(issue: z.core.$ZodIssue): string[] {
  if (issue.code !== "unrecognized_keys") return [placeOf(issue)];
  return issue.keys.map((key) => [...issue.path, key].map(String).join("."));
}

function placeOf({ path }: z.core.$ZodIssue): string {
  return path.map(String).join(".");
}

function problemOf(schema: z.core.$ZodType, issue: z.core.$ZodIssue, value: unknown): string {
  const place = placeOf(issue);
  if (issue.code !== "unrecognized_keys") {
    const words = issueWords(issue, value);
    if (issue.code === "invalid_type" && isEmpty(value)) return `it is empty; ${place} ${words}`;
    return issue.code === "custom"
      ? `${place === "" ? "" : `${place}: `}${words}`
      : `${place === "" ? "it" : place} ${words}${meantBy(issue, value)}`;
  }
  const known = keysAt(schema, issue.path, value);
  const [unknown = ""] = issue.keys;
  const meant = nearestName(unknown, known);
  const name = place === "" ? unknown : `${place}.${unknown}`;
  return `unknown key ${name}. ${meant === undefined ? `Known keys: ${known.join(", ")}` : `Did you mean ${meant}?`}`;
}

/** Suggestion of the nearest name that is allowed at the issue's path. */
function meantBy(issue: z.core.$ZodIssue, value: unknown): string {
  const allowed =
    issue.code === "invalid_value"
      ? issue.values
      : issue.code === "invalid_union" && issue.inclusive !== false
        ? (issue.options ?? [])
        : [];
  const written = valueAt(value, issue.path);
  const meant =
    typeof written === "string"
      ? nearestName(
          written,
          allowed.filter((each) => typeof each === "string"),
        )
      : undefined;
  return meant === undefined ? "" : `. Did you mean ${meant}?`;
}

function isEmpty(value: unknown): boolean {
  return (
    typeof value === "object" && value !== null && !Array.isArray(value) && Object.keys(value).length === 0
  );
}

/** Names that the object at a path may hold. */
function keysAt(schema: z.core.$ZodType, path: readonly PropertyKey[], value: unknown): string[] {
  let [at, here] = [chosen(schema, value), value];
  for (const part of path) {
    here = (here as Record<PropertyKey, unknown> | undefined)?.[part];
    if (at instanceof z.ZodObject) at = chosen(at.shape[String(part)], here);
    else at = chosen(at instanceof z.ZodArray ? at.element : (at as z.ZodRecord).valueType, here);
  }
  return at instanceof z.ZodObject ? Object.keys(at.shape) : [];
}

/** Schema without defaults. For a union: the member whose `kind` the value has, else its object. */
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
