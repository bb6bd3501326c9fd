/** Formats values as source text, for generated programs in JavaScript and Python. */
import type { Json } from "../../../base/index.ts";
import type { Language } from "./family.ts";

export function literal(language: Language, value: Json): string {
  return language === "javascript" ? JSON.stringify(value) : pythonLiteral(value);
}

export function call(language: Language, name: string, args: readonly Json[]): string {
  return `${name}(${args.map((arg) => literal(language, arg)).join(", ")})`;
}

function pythonLiteral(value: Json): string {
  if (value === null) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (typeof value !== "object") return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map((item) => pythonLiteral(item as Json)).join(", ")}]`;
  const entries = Object.entries(value).map(
    ([key, item]) => `${JSON.stringify(key)}: ${pythonLiteral(item as Json)}`,
  );
  return `{${entries.join(", ")}}`;
}
