import { expect, test } from "vitest";
import { Call } from "../../../contract/index.ts";
import { type DialectName, finishKind } from "./dialect.ts";
import { dialectAt, dialectNamed } from "./find-dialect.ts";

const names = Call.schema.shape.dialect.options.filter((name): name is DialectName => name !== "other");

test.each(names)("%s is found by its own name and its own path", (name) => {
  const dialect = dialectNamed(name);
  expect(dialect.name).toBe(name);
  expect(dialectAt(dialect.path)).toBe(dialect);
});

test.each(names)("a finish word of %s has one meaning, and an unknown word none", (name) => {
  const dialect = dialectNamed(name);
  const words = Object.values(dialect.finishWords).flat();
  expect(new Set(words).size).toBe(words.length);
  for (const [kind, known] of Object.entries(dialect.finishWords))
    for (const word of known) expect(finishKind(word, dialect)).toBe(kind);
  for (const word of [undefined, "", "constructor", "__proto__"])
    expect(finishKind(word, dialect)).toBe("other");
});
