/** Checks the shape of a trace that another program wrote: the file is not trusted, and every field must have the type
 *  that its readers expect. In: a schema and a value. Out: nothing, or a refusal that names the field. */
import type { z } from "zod";
import { asSentence, RollbookError } from "../../base/index.ts";
import { configProblem } from "../../contract/index.ts";

/** `remedy` is a sentence with the next step for the user. */
export function requireShape(
  schema: z.ZodType,
  value: unknown,
  { where, remedy }: { where: string; remedy: string },
): void {
  const { error } = schema.safeParse(value);
  if (error === undefined) return;
  const field = error.issues[0]!.path.join(".");
  throw new RollbookError(
    "bad-row",
    { where, ...(field === "" ? {} : { field }) },
    `${where}: ${asSentence(configProblem(schema, error.issues.slice(0, 1), value))} ${remedy}`,
  );
}
