/** Reads a declaration in YAML strictly. In: text, its schema, the error to raise. Out: the checked value. Reads no file. */
import type { z } from "zod";
import { configProblem } from "../../../contract/index.ts";
import { readYaml } from "../../../policy/index.ts";

/** `bad` makes the error from what is wrong. */
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
