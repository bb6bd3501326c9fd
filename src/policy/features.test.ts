import { describe, expect, test } from "vitest";
import { log1p } from "../base/exact-math.ts";
import type { DecisionCandidate } from "./decision.ts";
import { DEFAULT_FEATURES, digestFeatureSpec, PROMPT_FEATURES, parseFeatureSpec } from "./feature-spec.ts";
import { makeFeatureReader, squash } from "./features.ts";

const ask = (prompt: string, fields: Record<string, string | number | boolean> = {}) => ({ prompt, fields });
const dense = (prompt: string, over = {}, fields = {}) => {
  const reader = makeFeatureReader({ ...DEFAULT_FEATURES, wordBuckets: 0, ...over });
  const { indices, values, count } = reader.context(ask(prompt, fields));
  const out = new Array<number>(reader.size).fill(0);
  for (let e = 0; e < count; e++) out[indices[e]!] = values[e]!;
  return out;
};
const at = (name: (typeof PROMPT_FEATURES)[number]) => PROMPT_FEATURES.indexOf(name);

describe("a prompt's features", () => {
  test("count characters, words, lines, marks and scripts as counted by hand", () => {
    const text = "Ab 12?\nx={é Ж 漢字";
    const found = dense(text);
    expect(found[at("bias")]).toBe(1);
    expect(found[at("chars")]).toBe(log1p(16) / 8);
    // Ab, 12, x, é, Ж, 漢, 字
    expect(found[at("words")]).toBe(log1p(7) / 6);
    expect(found[at("lines")]).toBe(log1p(1) / 3);
    expect(found[at("digits")]).toBe(2 * (1 / 16) * 4);
    expect(found[at("capitals")]).toBe((1 / 16) * 4);
    expect(found[at("code marks")]).toBe((1 / 16) * 8);
    expect(found[at("math marks")]).toBe((1 / 16) * 8);
    expect(found[at("questions")]).toBe(log1p(1));
    expect(found[at("latin beyond ascii")]).toBe((1 / 16) * 4);
    expect(found[at("cyrillic and greek")]).toBe(1 / 16);
    expect(found[at("han, kana, hangul")]).toBe(2 / 16);
  });

  test("are finite for an empty prompt, and for one beyond any limit", () => {
    expect(dense("")).toEqual([1, ...new Array(PROMPT_FEATURES.length - 1).fill(0)]);
    expect(dense("word ".repeat(200_000)).every(Number.isFinite)).toBe(true);
  });

  test("hash words without regard to case, count repeats by logarithm, and have length 1", () => {
    const reader = makeFeatureReader({ ...DEFAULT_FEATURES, wordBuckets: 1 << 20 });
    const words = (prompt: string) => {
      const { indices, values, count } = reader.context(ask(prompt));
      return [...indices.subarray(0, count)]
        .map((index, e) => [index, values[e]!] as const)
        .filter(([index]) => index >= reader.denseSize);
    };
    // the, cat, the+cat, cat+the
    const found = words("The cat the");
    expect(found).toHaveLength(4);
    expect(found.reduce((sum, [, value]) => sum + value * value, 0)).toBeCloseTo(1, 12);
    expect(found[0]![1] / found[1]![1]).toBeCloseTo(log1p(2) / log1p(1), 12);
    expect(words("the CAT, the!")).toEqual(found);
    expect(words("cat")[0]![0]).toBe(found[1]![0]);
  });

  test("of a prompt with too many words come from its beginning and its end", () => {
    const reader = makeFeatureReader({ ...DEFAULT_FEATURES, maxWords: 4, wordBuckets: 1 << 20 });
    const places = (prompt: string) => {
      const { indices, count } = reader.context(ask(prompt));
      return new Set([...indices.subarray(0, count)].filter((index) => index >= reader.denseSize));
    };
    const long = places("a b c d e f g h");
    for (const kept of ["a", "b", "g", "h"]) expect(long.has([...places(kept)][0]!)).toBe(true);
    for (const lost of ["c", "d", "e", "f"]) expect(long.has([...places(lost)][0]!)).toBe(false);
  });

  test("take fields by their declaration: numbers squashed and marked as present, categories one-hot", () => {
    const fields = [
      { name: "turn", kind: "number" },
      { name: "role", kind: "category", buckets: 8 },
    ];
    const from = PROMPT_FEATURES.length;
    const found = dense("", { fields }, { turn: -3, role: "planner" });
    expect(found.slice(from, from + 2)).toEqual([-log1p(3), 1]);
    expect(found.slice(from + 2).filter((each) => each === 1)).toHaveLength(1);
    expect(dense("", { fields }).slice(from)).toEqual(new Array(10).fill(0));
    expect(() => dense("", { fields }, { turn: Number.NaN })).toThrow(
      expect.objectContaining({ code: "bad-field" }) as Error,
    );
  });
});

test("a candidate lacks no declared feature", () => {
  const reader = makeFeatureReader({ ...DEFAULT_FEATURES, candidate: ["price", "latency"] });
  const candidate = (features: Record<string, number>): DecisionCandidate => ({
    id: "small",
    selectable: true,
    reasons: [],
    features,
  });
  expect([...reader.candidate(candidate({ price: 2, latency: 0, more: 1 }))]).toEqual([squash(2), 0]);
  expect(() => reader.candidate(candidate({ price: 2 }))).toThrow(
    expect.objectContaining({
      code: "missing-feature",
      fields: expect.objectContaining({ name: "latency" }),
    }) as Error,
  );
});

test("a spec is refused if it cannot be laid out, and its digest names its content", () => {
  for (const over of [
    { wordBuckets: 1000 },
    {
      fields: [
        { name: "a", kind: "number" },
        { name: "a", kind: "number" },
      ],
    },
    { candidate: ["p", "p"] },
    { colour: 1 },
  ])
    expect(() => parseFeatureSpec({ ...DEFAULT_FEATURES, ...over }, "spec")).toThrow(
      expect.objectContaining({ code: "bad-feature-spec" }) as Error,
    );
  expect(digestFeatureSpec(DEFAULT_FEATURES)).not.toBe(
    digestFeatureSpec({ ...DEFAULT_FEATURES, maxWords: 9 }),
  );
  expect(() => makeFeatureReader({ ...DEFAULT_FEATURES, wordWeights: "idf" })).toThrow("32768 factors");
});
