import { expect, test } from "vitest";
import { rescaleWords } from "../../../bench/support/judge/sparse-rows.ts";
import { DEFAULT_FEATURES, makeFeatureReader } from "../../policy/index.ts";
import { compactRows, gatherRows } from "./sparse-rows.ts";
import { wordScaleOf } from "./word-scale.ts";

const spec = { ...DEFAULT_FEATURES, wordBuckets: 1024 };
const prompts = ["the cat sat", "the dog sat down", "the end"];
const plain = makeFeatureReader(spec);
const rows = gatherRows(prompts, plain.size, (prompt) => plain.context({ prompt, fields: {} }));
const scale = wordScaleOf(rows, plain.denseSize);

test("a word of every row weighs ln(4/4) = 0, one of a single row ln(4/2)", () => {
  const placeOf = (word: string) => {
    const { indices, count } = plain.context({ prompt: word, fields: {} });
    return indices[count - 1]! - plain.denseSize;
  };
  expect(scale[placeOf("the")]).toBe(0);
  expect(scale[placeOf("dog")]).toBeCloseTo(Math.LN2, 12);
});

test("rescaled rows are what a reader with the scale reads", () => {
  const reader = makeFeatureReader({ ...spec, wordWeights: "idf" }, scale);
  const direct = gatherRows(prompts, reader.size, (prompt) => reader.context({ prompt, fields: {} }));
  const rescaled = rescaleWords(rows, scale, plain.denseSize);
  expect([...rescaled.indices]).toEqual([...direct.indices]);
  for (const [e, value] of rescaled.values.entries()) expect(value).toBeCloseTo(direct.values[e]!, 12);
});

test("compact rows hold the same entries over the columns that occur", () => {
  const { rows: compact, columns } = compactRows(rows);
  expect(columns[0]).toBe(0);
  expect([...compact.indices].map((column) => columns[column])).toEqual([...rows.indices]);
});
