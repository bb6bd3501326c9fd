/** What is wrong with a configuration, in words. An unknown name comes first, with the nearest known one: a value that is
 *  missing is often one that is written wrongly. In: a zod schema, its issues. Out: a place and a problem. */
import { z } from "zod";
import { nearestName } from "../../base/index.ts";

export function configProblem(schema: z.core.$ZodType, issues: readonly z.core.$ZodIssue[]): string {
  const issue = issues.find(({ code }) => code === "unrecognized_keys") ?? issues[0]!;
  const place = issue.path.map(String).join(".") || "the file";
  if (issue.code !== "unrecognized_keys") return `${place}: ${issue.message}`;
  const known = keysAt(schema, issue.path);
  const [unknown = ""] = issue.keys;
  const meant = nearestName(unknown, known);
  return `${place}: there is no setting ${unknown}. ${meant === undefined ? `Known: ${known.join(", ")}` : `Did you mean ${meant}?`}`;
}

/** The names that the object at a path may hold. */
function keysAt(schema: z.core.$ZodType, path: readonly PropertyKey[]): string[] {
  let at = bare(schema);
  for (const part of path) {
    if (at instanceof z.ZodObject) at = bare(at.shape[String(part)]);
    else at = bare(at instanceof z.ZodArray ? at.element : (at as z.ZodRecord).valueType);
  }
  return at instanceof z.ZodObject ? Object.keys(at.shape) : [];
}

/** Without what makes it optional; of several forms the object. */
function bare(schema: z.core.$ZodType): z.core.$ZodType {
  const { innerType, options } = (
    schema as { def?: { innerType?: z.core.$ZodType; options?: readonly z.core.$ZodType[] } }
  ).def!;
  if (innerType !== undefined) return bare(innerType);
  const object = options?.map(bare).find((each) => each instanceof z.ZodObject);
  return object ?? schema;
}
