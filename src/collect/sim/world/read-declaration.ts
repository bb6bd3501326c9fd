/** Reads a declaration in YAML strictly. In: text, its schema, the error to raise. Out: the checked value. Reads no file. */
import type { z } from "zod";
import { readYaml } from "../../../policy/index.ts";

/** `bad` makes the error from what is wrong. */
export function readDeclaration<S extends z.ZodType>(
  text: string,
  schema: S,
  bad: (what: string) => Error,
): z.output<S> {
  const result = schema.safeParse(readYaml(text, bad));
  if (result.success) return result.data;
  const { path, message } = result.error.issues[0]!;
  throw bad(`${path.map(String).join(".") || "the file"}: ${message}`);
}
