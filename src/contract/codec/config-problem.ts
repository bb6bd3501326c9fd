/** Describes configuration errors in words. In: a schema, the issues it found, the value. Out: one fault without a full
 *  stop, or a list with one fault per line. Unknown keys come first, with the nearest name, because a missing key is
 *  often misspelt. */
import * as z from "zod";
import { asSentence, nearestName } from "../../base/index.ts";
import { deepest, type Issue, issueWords, valueAt } from "./issue-words.ts";

type UnknownKeys = z.core.$ZodIssueUnrecognizedKeys;

/** Maximum number of listed faults; the others are counted. */
const MOST_FAULTS = 8;

/** `otherFile`: a key that only another kind of file has, and the problem if this file has it. */
export function configProblem(
  schema: z.core.$ZodType,
  issues: readonly Issue[],
  value: unknown,
  otherFile?: { readonly key: string; readonly problem: string },
): string {
  const causes = issues.map((issue) => deepest([issue]));
  const unknown = causes.filter((issue) => issue.code === "unrecognized_keys");
  if (
    otherFile !== undefined &&
    unknown.some(({ path, keys }) => path.length === 0 && keys.includes(otherFile.key))
  )
    return otherFile.problem;
  const misspelt = new Set(unknown.flatMap((issue) => meantPlaces(schema, issue, value)));
  const others = causes.filter((each) => each.code !== "unrecognized_keys" && !misspelt.has(placeOf(each)));
  const faults = new Set([
    ...unknown.flatMap((issue) => unknownKeys(shapeAt(schema, issue.path, value), issue)),
    ...others.map((issue) => fieldFault(schema, issue, value)),
  ]);
  const empty = isEmpty(value) ? "it is empty; " : "";
  if (faults.size === 1) return `${empty}${[...faults][0]}`;
  const listed = [...faults].slice(0, MOST_FAULTS).map(asSentence);
  const more = faults.size > MOST_FAULTS ? [`and ${faults.size - MOST_FAULTS} more.`] : [];
  return [`${empty}${faults.size} faults:`, ...[...listed, ...more].map((line) => `  - ${line}`)].join("\n");
}

/** Places of the keys that unknown keys probably mean. A missing key among them is no second fault. */
function meantPlaces(schema: z.core.$ZodType, issue: UnknownKeys, value: unknown): string[] {
  const known = Object.keys(shapeAt(schema, issue.path, value));
  return issue.keys.flatMap((key) => {
    const meant = nearestName(key, known);
    const path = [...issue.path, meant ?? key];
    return meant === undefined || valueAt(value, path) !== undefined ? [] : [path.map(String).join(".")];
  });
}

function placeOf({ path }: Issue): string {
  return path.map(String).join(".");
}

function fieldFault(schema: z.core.$ZodType, issue: Issue, value: unknown): string {
  const place = placeOf(issue);
  const words = issueWords(issue, value);
  return issue.code === "custom"
    ? `${place === "" ? "" : `${place}: `}${words}`
    : `${place === "" ? "it" : place} ${words}${meaningOf(schema, issue, value)}${meantBy(issue, value)}`;
}

/** The first sentence of the description of a missing key, in parentheses. */
function meaningOf(schema: z.core.$ZodType, { path }: Issue, value: unknown): string {
  const key = path.at(-1);
  if (key === undefined || valueAt(value, path) !== undefined) return "";
  const text = (shapeAt(schema, path.slice(0, -1), value)[String(key)] as z.ZodType | undefined)?.description;
  if (text === undefined) return "";
  const sentence = text.replace(/\.($|\s.*$)/s, "");
  return ` (${/^[A-Z][a-z ]/.test(sentence) ? sentence[0]!.toLowerCase() + sentence.slice(1) : sentence})`;
}

/** One fault per unknown key. The known keys are listed once, and only if a key has no near name. */
function unknownKeys(shape: KeySchemas, { path, keys }: UnknownKeys): string[] {
  const known = Object.keys(shape);
  let isListed = false;
  return keys.map((key) => {
    const alike = known.filter((each) => each.toLowerCase().startsWith(key.toLowerCase()));
    const meant = nearestName(key, known) ?? (alike.length > MOST_ALIKE ? "" : alike.join(" or "));
    const name = [...path, key].map(String).join(".");
    if (meant !== "") return `unknown key ${name}. Did you mean ${meant}?`;
    if (isListed) return `unknown key ${name}`;
    isListed = true;
    return `unknown key ${name}. ${keysText(shape)}`;
  });
}

/** Maximum number of suggested keys that begin with an unknown key. */
const MOST_ALIKE = 3;

function keysText(shape: KeySchemas): string {
  const isOptional = (name: string) => z.safeParse(shape[name]!, undefined).success;
  const [required, optional] = [false, true].map((wanted) =>
    Object.keys(shape).filter((name) => isOptional(name) === wanted),
  ) as [string[], string[]];
  return required.length === 0 || optional.length === 0
    ? `Known keys: ${Object.keys(shape).join(", ")}`
    : `Required keys: ${required.join(", ")}. Optional keys: ${optional.join(", ")}`;
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

type KeySchemas = Readonly<Record<string, z.core.$ZodType>>;

/** Keys that the object at a path may hold, with their schemas. */
function shapeAt(schema: z.core.$ZodType, path: readonly PropertyKey[], value: unknown): KeySchemas {
  let [at, here] = [chosen(schema, value), value];
  for (const part of path) {
    here = (here as Record<PropertyKey, unknown> | undefined)?.[part];
    if (at instanceof z.ZodObject) at = chosen(at.shape[String(part)], here);
    else at = chosen(at instanceof z.ZodArray ? at.element : (at as z.ZodRecord).valueType, here);
  }
  return at instanceof z.ZodObject ? at.shape : {};
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
