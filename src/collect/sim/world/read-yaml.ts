/** Reads a declaration in YAML strictly. In: text, its schema, the error to raise. Out: the checked value. Reads no file. */
import { parseDocument } from "yaml";
import type { z } from "zod";

/** `bad` makes the error from what is wrong. */
export function readYaml<S extends z.ZodType>(
  text: string,
  schema: S,
  bad: (what: string) => Error,
): z.output<S> {
  const document = parseDocument(text, { uniqueKeys: true, strict: true });
  const [problem] = [...document.errors, ...document.warnings];
  if (problem !== undefined) throw bad(problem.message.split("\n")[0]!);
  const result = schema.safeParse(document.toJS());
  if (result.success) return result.data;
  const { path, message } = result.error.issues[0]!;
  throw bad(`${path.map(String).join(".") || "the file"}: ${message}`);
}
