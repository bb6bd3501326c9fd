import { readdirSync, readFileSync } from "node:fs";
import { Ajv2020 } from "ajv/dist/2020.js";
import { describe, expect, test } from "vitest";
import { exampleWire } from "../../test/support/examples.ts";
import { draftWire, stepWire } from "../../test/support/shelf.ts";
import { EXCHANGE_TYPES, schemaFiles } from "./json-schema.ts";
import { RECORD_TYPES } from "./records.ts";
import { RolloutDraft } from "./rollout/rollout-draft.ts";

const directory = new URL("../../schemas/", import.meta.url);
const files = readdirSync(directory);
const readText = (name: string) => readFileSync(new URL(name, directory), "utf8");

/** An independent validator that reads the published files. */
const ajv = new Ajv2020({ strict: true, strictRequired: false, allErrors: true });
for (const name of files) ajv.addSchema(JSON.parse(readText(name)));
const validate = (kind: string, value: unknown) => ajv.validate(kind, value);

describe("schemas/", () => {
  test("are what the contracts say; else run `npm run schemas`", () => {
    expect(files.sort()).toEqual([...schemaFiles().keys()].sort());
    for (const [name, text] of schemaFiles()) expect(readText(name), name).toBe(text);
  });

  test.each(EXCHANGE_TYPES.map((type) => type.kind))("%s accepts our example and names itself", (kind) => {
    const { streams } = draftWire("r") as { streams: object[] };
    const wire =
      kind === RolloutDraft.kind ? draftWire("r", { streams: [...streams, stepWire()] }) : exampleWire(kind);
    expect(validate(kind, wire), JSON.stringify(ajv.errors)).toBe(true);
    expect(JSON.parse(readText(`${kind}.json`))).toMatchObject({
      $id: kind,
      properties: { schema: { const: kind } },
    });
  });

  test.each(RECORD_TYPES.map((type) => type.kind))(
    "%s refuses a stranger, a gap and another kind",
    (kind) => {
      const wire = exampleWire(kind);
      expect(validate(kind, { ...wire, stranger: 1 })).toBe(false);
      expect(validate(kind, { ...wire, schema: "rollbook.other.v1" })).toBe(false);
      const { schema: _, ...gap } = wire;
      expect(validate(kind, gap)).toBe(false);
    },
  );

  test.each([
    ["an empty id", { rolloutId: "" }],
    ["a path in an id", { rolloutId: "a/b" }],
    ["a path upwards", { rolloutId: "..a" }],
    ["an @ in an id", { rolloutId: "a@b" }],
    ["a line break in an id", { rolloutId: "a\nb" }],
    ["a key without a version", { environment: "env" }],
    ["a seed as a number", { seed: 7 }],
    ["a seed with a sign", { seed: "-7" }],
    ["a short digest", { calls: ["sha256:00"] }],
    ["a negative count", { assignment: { digest: `sha256:${"0".repeat(64)}`, sample: -1 } }],
    ["an unknown ending", { ending: { kind: "lost" } }],
    ["no stream", { streams: [] }],
    ["sampling that is no object", { sampling: [] }],
  ])("a content with %s is refused", (_, over) => {
    const kind = "rollbook.rollout-content.v1";
    expect(validate(kind, { ...exampleWire(kind), ...over })).toBe(false);
  });
});
