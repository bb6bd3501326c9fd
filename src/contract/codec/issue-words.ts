/** Describes a schema violation in words. In: an issue of zod, the value. Out: the path and the requirement, without a
 *  full stop. Texts of zod itself never reach a reader. Pure. */
import type * as z from "zod";

export type Issue = z.core.$ZodIssue;

/** Type names that authors of YAML or JSON know. */
const KINDS: Readonly<Record<string, string>> = {
  record: "an object with keys",
  object: "an object with keys",
  array: "a list",
  tuple: "a list",
  string: "a text",
  number: "a number",
  int: "a whole number",
  bigint: "a whole number",
  boolean: "true or false",
  null: "empty",
};

/** Matches zod's own messages; any other message was written for the field. */
const OWN_WORDS = /^(Invalid|Too (big|small)|Unrecognized)\b/;

/** Text after the field name: "must be a text, and is a number". A message written for the field is used unchanged,
 *  except for a type error, where "is missing" is more helpful. */
export function issueWords(issue: Issue, value: unknown): string {
  const isTyped = issue.code === "invalid_type";
  if (!isTyped && !OWN_WORDS.test(issue.message))
    return `${issue.message[0]?.toLowerCase()}${issue.message.slice(1)}`;
  const wanted = wantedBy(issue);
  const actual = valueAt(value, issue.path);
  if (wanted === undefined) return formWords(issue, actual);
  if (actual === undefined) return `is missing, and must be ${wanted}`;
  return isTyped ? `must be ${wanted}, and is ${kindOf(actual)}` : `must be ${wanted}`;
}

/** The cause of a failed union is one level down: the branch that matched furthest. Branches that fail at the same path
 *  stay together, so that all allowed values are named. */
export function deepest(issues: readonly Issue[]): Issue {
  const issue = issues[0]!;
  if (issue.code !== "invalid_union" || issue.errors.length === 0) return issue;
  const branches = issue.errors.filter((branch) => branch.length > 0).map((branch) => deepest(branch));
  const best = branches.reduce<Issue | undefined>(
    (a, b) => (a && a.path.length >= b.path.length ? a : b),
    undefined,
  );
  return best === undefined || wantedBy(issue) !== undefined
    ? issue
    : ({ ...best, path: [...issue.path, ...best.path] } as Issue);
}

export function valueAt(value: unknown, path: readonly PropertyKey[]): unknown {
  let at = value;
  for (const key of path) at = (at as Record<PropertyKey, unknown> | undefined)?.[key];
  return at;
}

/** Kinds, names or bounds that are allowed; undefined for other kinds of issue. */
function wantedBy(issue: Issue): string | undefined {
  switch (issue.code) {
    case "invalid_type":
      return KINDS[issue.expected] ?? `a ${issue.expected}`;
    case "invalid_value":
      return issue.values.map(quoted).join(" or ");
    case "too_big":
    case "too_small":
      return boundOf(issue);
    case "not_multiple_of":
      return `a multiple of ${issue.divisor}`;
    case "invalid_union": {
      if (issue.inclusive !== false && issue.options !== undefined)
        return issue.options.map(quoted).join(" or ");
      const branches = issue.errors.map(([first, ...others]) =>
        first === undefined || others.length > 0 || first.path.length > 0 ? undefined : wantedBy(first),
      );
      return branches.length > 0 && branches.every((each) => each !== undefined)
        ? [...new Set(branches)].join(" or ")
        : undefined;
    }
    default:
      return undefined;
  }
}

function boundOf(issue: z.core.$ZodIssueTooBig | z.core.$ZodIssueTooSmall): string {
  const bound =
    issue.code === "too_big"
      ? `${issue.inclusive === false ? "below" : "at most"} ${issue.maximum}`
      : `${issue.inclusive === false ? "above" : "at least"} ${issue.minimum}`;
  if (issue.origin === "string") return `a text of ${bound} characters`;
  return issue.origin === "array" ? `a list of ${bound} items` : bound;
}

function formWords(issue: Issue, actual: unknown): string {
  if (issue.code === "unrecognized_keys") return `has unknown keys: ${issue.keys.join(", ")}`;
  if (issue.code === "invalid_key")
    return `is no name that may stand here: it ${issue.issues.map((each) => issueWords(each, issue.path.at(-1))).join(", and ")}`;
  if (issue.code !== "invalid_format") return "has a value that is not allowed";
  if (issue.format === "url")
    return `must be a URL with its scheme, such as http://127.0.0.1:8000/v1, and is ${quoted(actual)}`;
  return issue.format === "regex" ? `must match ${issue.pattern}` : `must be a valid ${issue.format}`;
}

function kindOf(value: unknown): string {
  if (Number.isNaN(value)) return "not a number";
  const kind = Array.isArray(value) ? "array" : value === null ? "null" : typeof value;
  return KINDS[kind] ?? kind;
}

function quoted(value: unknown): string {
  return typeof value === "string" ? JSON.stringify(value) : String(value);
}
