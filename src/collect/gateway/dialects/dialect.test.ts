import { expect, test } from "vitest";
import { Call } from "../../../contract/index.ts";
import { type DialectName, finishKind, requestFaults } from "./dialect.ts";
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

test.each([
  ["openai-chat", { model: "auto", messages: "hi" }, "messages is not a list"],
  ["openai-chat", { model: "auto" }, "messages is missing"],
  ["anthropic-messages", { model: 1, messages: [] }, "model is not text"],
  ["openai-chat", {}, "model is missing, and messages is missing"],
  ["openai-responses", {}, "model is missing"],
] as const)("a body that is no request of %s is told its wrong fields: %j", (name, body, faults) => {
  expect(dialectNamed(name).readRequest(body)).toBeUndefined();
  expect(requestFaults(dialectNamed(name), body)).toBe(faults);
});
