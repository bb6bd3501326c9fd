import { expect, it } from "vitest";
import * as z from "zod";
import { configProblem } from "./config-problem.ts";
import { refuseIssues } from "./record.ts";

const kinds = z.discriminatedUnion("kind", [
  z.strictObject({ kind: z.literal("a") }),
  z.strictObject({ kind: z.literal("b"), n: z.number() }),
]);

/** [schema, value, expected message for the field x]. */
const CASES: readonly [z.ZodType, unknown, string][] = [
  [kinds, { kind: "other" }, 'x.kind must be "a" or "b"'],
  [kinds, {}, 'x.kind is missing, and must be "a" or "b"'],
  [kinds, 3, "x must be an object with keys, and is a number"],
  [kinds, undefined, "x is missing, and must be an object with keys"],
  [z.union([z.string(), z.number()]), true, "x must be a text or a number"],
  [z.union([z.literal("a"), z.literal("b")]), "c", 'x must be "a" or "b"'],
  [z.union([z.object({ a: z.string() }), z.null()]), { a: 1 }, "x.a must be a text, and is a number"],
  [z.string().regex(/^a$/), "b", "x must match /^a$/"],
  [z.string().regex(/^a$/, "is not an a"), "b", "x is not an a"],
  [z.string().min(2), "b", "x must be a text of at least 2 characters"],
  [z.array(z.number()).max(1), [1, 2], "x must be a list of at most 1 items"],
  [z.int(), 1.5, "x must be a whole number, and is a number"],
  [z.number(), Number.NaN, "x must be a number, and is not a number"],
  [z.number().lt(3), 3, "x must be below 3"],
  [z.number().multipleOf(2), 3, "x must be a multiple of 2"],
  [z.url(), "b", 'x must be a URL with its scheme, such as http://127.0.0.1:8000/v1, and is "b"'],
  [
    z.record(z.string().regex(/^a$/), z.number()),
    { b: 1 },
    "x.b is no name that may stand here: it must match /^a$/",
  ],
  [z.tuple([z.number(), z.number()]), [1], "x must be a list of at least 2 items"],
];

it.each(CASES)("a fault is said in words, never in those of the schema library (%#)", (field, x, said) => {
  const schema = z.strictObject({ x: field });
  const { issues } = schema.safeParse({ x }).error!;
  expect(configProblem(schema, issues, { x })).toBe(said);
  const { message } = refuseIssues(issues, { x }, "file");
  expect(message).toMatch(/^file: \$\.x.*\. Correct the field\.$/);
  expect(message).toContain(said.replace(/^\S+ /, ""));
});

it("a check without words of its own is told as a value that is not allowed", () => {
  const schema = z.strictObject({ x: z.string().refine(() => false) });
  const { issues } = schema.safeParse({ x: "b" }).error!;
  expect(configProblem(schema, issues, { x: "b" })).toBe("x: has a value that is not allowed");
});

it("every fault of a configuration has a line with its reason, but not the key that was misspelt", () => {
  const schema = z.strictObject({ url: z.url(), price: z.number(), name: z.string() });
  const problem = (value: object) => configProblem(schema, schema.safeParse(value).error!.issues, value);
  expect(problem({ url: "http://a", price: "cheap", name: 3 })).toBe(
    "2 faults:\n  - price must be a number, and is a text.\n  - name must be a text, and is a number.",
  );
  expect(problem({ ulr: "http://a", price: "cheap", name: "n" })).toBe(
    "2 faults:\n  - unknown key ulr. Did you mean url?\n  - price must be a number, and is a text.",
  );
  expect(problem({ ulr: "http://a", price: 1 })).toBe(
    "2 faults:\n  - unknown key ulr. Did you mean url?\n  - name is missing, and must be a text.",
  );
});

it("an empty configuration is told as empty, with the keys that it needs", () => {
  const schema = z.strictObject({ url: z.url(), price: z.number() });
  expect(configProblem(schema, schema.safeParse({}).error!.issues, {})).toBe(
    "it is empty; 2 faults:\n  - url is missing, and must be a text.\n  - price is missing, and must be a number.",
  );
});

it("a missing key is told with its description", () => {
  const folder = z.string().describe("The folder that holds the tasks.");
  const schema = z.strictObject({ world: z.strictObject({ tasks: folder }) });
  const problem = (value: object) => configProblem(schema, schema.safeParse(value).error!.issues, value);
  expect(problem({ world: {} })).toBe(
    "world.tasks is missing, and must be a text (the folder that holds the tasks)",
  );
});

it("every unknown key of a configuration is named, also within a section", () => {
  const schema = z.strictObject({ url: z.url(), limits: z.strictObject({ price: z.number().default(1) }) });
  const problem = (value: object) => configProblem(schema, schema.safeParse(value).error!.issues, value);
  expect(problem({ ulr: "http://a", limist: {}, limits: {} })).toBe(
    "2 faults:\n  - unknown key ulr. Did you mean url?\n  - unknown key limist. Did you mean limits?",
  );
  expect(problem({ url: "http://a", limits: { prise: 1, prcie: 2 } })).toBe(
    "2 faults:\n  - unknown key limits.prise. Did you mean price?\n  - unknown key limits.prcie. Did you mean price?",
  );
  expect(problem({ ulr: "http://a", url: "http://a", limits: { prise: 1 } })).toBe(
    "2 faults:\n  - unknown key limits.prise. Did you mean price?\n  - unknown key ulr. Did you mean url?",
  );
});

it("an unknown key within an alternative is named with the known keys", () => {
  const tasks = z.union([z.strictObject({ count: z.number() }), z.strictObject({ folder: z.string() })]);
  const schema = z.strictObject({ tasks });
  const problem = (value: object) => configProblem(schema, schema.safeParse(value).error!.issues, value);
  expect(problem({ tasks: { folder: "x", count: 8 } })).toBe("unknown key tasks.folder. Known keys: count");
  expect(problem({ tasks: { count: 8, coumt: 9 } })).toBe("unknown key tasks.coumt. Did you mean count?");
});

it("an unknown key without a near name is told which keys are required", () => {
  const schema = z.strictObject({ modelDir: z.string(), modelType: z.string(), seed: z.number().default(0) });
  const problem = (value: object) => configProblem(schema, schema.safeParse(value).error!.issues, value);
  const models = { modelDir: "m", modelType: "t" };
  expect(problem({ ...models, colour: 1 })).toBe(
    "unknown key colour. Required keys: modelDir, modelType. Optional keys: seed",
  );
  expect(problem({ ...models, model: "m" })).toBe("unknown key model. Did you mean modelDir or modelType?");
});

it("of many faults the first are listed and the others are counted", () => {
  const schema = z.record(z.string(), z.number());
  const value = Object.fromEntries(Array.from({ length: 11 }, (_, n) => [`k${n}`, "text"]));
  const lines = configProblem(schema, schema.safeParse(value).error!.issues, value).split("\n");
  expect([lines.length, lines[0], lines.at(-1)]).toEqual([10, "11 faults:", "  - and 3 more."]);
});
