/** Reads a declaration in YAML strictly. Reads no file.
 *  In: text, its schema, a constructor of the error. Out: the checked value. */
import type { z } from "zod";
import { configProblem } from "../../../contract/index.ts";
import { readYaml } from "../../../policy/index.ts";

/** `bad` makes the error from a description of the fault. */
export function readDeclaration<S extends z.ZodType>(
  text: string,
  schema: S,
  bad: (what: string) => Error,
): z.output<S> {
  const value = readYaml(text, bad);
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  throw bad(configProblem(schema, result.error.issues, value));
}
