import fc from "fast-check";
import { expect, it } from "vitest";
import { renameModel, spliceFields } from "./splice-json.ts";

it.each([
  ['{"model":"a","n":1}', { model: "b" }, '{"model":"b","n":1}'],
  [
    '{ "n" : 12345678901234567890 , "model" : "a" }',
    { model: "b" },
    '{ "n" : 12345678901234567890 , "model" : "b" }',
  ],
  ['{"x":{"model":"a"},"model":"a"}', { model: "b" }, '{"x":{"model":"a"},"model":"b"}'],
  ['{"x":"\\"model\\":1"}', { model: "b" }, '{"x":"\\"model\\":1","model":"b"}'],
  ["{}", { a: true, b: [1] }, '{"a":true,"b":[1]}'],
  ['{"model":"a","model":"c"}', { model: "b" }, '{"model":"b","model":"b"}'],
  ['{"\\u006dodel":"a"}', { model: "b" }, '{"\\u006dodel":"b"}'],
  ['{"a":1,"n":[2],"z":3}', { n: undefined }, '{"a":1,"z":3}'],
  ['{ "a": 1, "n": 2, "m": 3 }', { n: undefined, m: undefined }, '{ "a": 1}'],
  ['{"n":1}', { n: undefined, m: 2 }, '{"m":2}'],
])("%s with %j is %s", (text, fields, expected) => {
  expect(spliceFields(text, fields)).toBe(expected);
});

it("sets the fields and leaves every other one as it was, in any object", () => {
  const fields = { model: "routed", logprobs: true };
  fc.assert(
    fc.property(fc.dictionary(fc.string(), fc.jsonValue()), fc.constantFrom(0, 1, 3), (object, space) => {
      const text = JSON.stringify(object, null, space);
      expect(JSON.parse(spliceFields(text, fields))).toEqual({ ...JSON.parse(text), ...fields });
    }),
  );
});

it("removes fields and leaves every other one as it was, in any object", () => {
  const names = fc.constantFrom("a", "b", "c", "d");
  fc.assert(
    fc.property(fc.dictionary(names, fc.jsonValue()), fc.constantFrom(0, 1, 3), (object, space) => {
      const text = JSON.stringify(object, null, space);
      const { b: _, d: __, ...rest } = JSON.parse(text);
      expect(JSON.parse(spliceFields(text, { b: undefined, d: undefined, e: 1 }))).toEqual({ ...rest, e: 1 });
    }),
  );
});

it("renames the model of any body to the bytes that splicing gives", () => {
  const name = fc.oneof(fc.constantFrom("auto", "a b", 'q"', "b\\", "Ã", "ü", "\u0001", ""), fc.string());
  const other = fc.oneof(
    fc.jsonValue(),
    fc.constantFrom("model", '"model"', '\\"model', { model: "auto" }, "a model", "x".repeat(60)),
  );
  const escaped = (text: string) => text.replaceAll("model", "m\\u006fdel");
  fc.assert(
    fc.property(
      fc.record({ asked: name, to: name, before: other, after: other }),
      fc.constantFrom(0, 1),
      fc.constantFrom((text: string) => text, escaped),
      fc.boolean(),
      ({ asked, to, before, after }, space, spell, isFirst) => {
        const object = isFirst ? { model: asked, before, after } : { before, model: asked, after };
        const text = spell(JSON.stringify(object, null, space));
        const renamed = renameModel(Buffer.from(text), {
          text,
          asked,
          name: Buffer.from(JSON.stringify(to)),
        });
        expect(renamed.toString()).toBe(Buffer.from(spliceFields(text, { model: to })).toString());
      },
    ),
    { numRuns: 500 },
  );
});
