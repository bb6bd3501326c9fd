import oracle from "canonicalize";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { canonicalize, isCanonical, type Json, MAX_DEPTH } from "./canonical-json.ts";
import { isRollbookError } from "./errors.ts";
import { type Rng, rngFrom } from "./rng.ts";

const json = fc.jsonValue({ stringUnit: "binary", maxDepth: 6 });
const integerKeys = fc.dictionary(fc.oneof(fc.nat(12).map(String), fc.string({ maxLength: 2 })), json);

const bits = (hex: string): number => Buffer.from(hex, "hex").readDoubleBE();

/** Error code and path with which `value` is refused. */
function refusal(value: unknown): [string, unknown] {
  try {
    canonicalize(value);
  } catch (error) {
    if (isRollbookError(error)) return [error.code, error.fields.path];
    throw error;
  }
  throw new Error("accepted");
}

function nested(levels: number): unknown {
  let value: unknown = 1;
  for (let i = 0; i < levels; i++) value = i % 2 === 0 ? [value] : { k: value };
  return value;
}

describe("canonicalize", () => {
  it("gives the text of the npm package canonicalize for any JSON value", () => {
    fc.assert(
      fc.property(fc.oneof(json, integerKeys), (value) => {
        expect(canonicalize(value)).toBe(oracle(value));
      }),
      { numRuns: 2000 },
    );
  });

  it("gives the same text whatever order the keys were added in", () => {
    fc.assert(
      fc.property(integerKeys, fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }), (object, seed) => {
        const shuffled = rngFrom(seed).shuffle(Object.entries(object));
        expect(canonicalize(Object.fromEntries(shuffled))).toBe(canonicalize(object));
      }),
    );
  });

  // RFC 8785, appendix B.
  it.each([
    ["0000000000000000", "0"],
    ["8000000000000000", "0"],
    ["0000000000000001", "5e-324"],
    ["8000000000000001", "-5e-324"],
    ["7fefffffffffffff", "1.7976931348623157e+308"],
    ["ffefffffffffffff", "-1.7976931348623157e+308"],
    ["4340000000000000", "9007199254740992"],
    ["c340000000000000", "-9007199254740992"],
    ["4430000000000000", "295147905179352830000"],
    ["44b52d02c7e14af5", "9.999999999999997e+22"],
    ["44b52d02c7e14af6", "1e+23"],
    ["44b52d02c7e14af7", "1.0000000000000001e+23"],
    ["444b1ae4d6e2ef4e", "999999999999999700000"],
    ["444b1ae4d6e2ef4f", "999999999999999900000"],
    ["444b1ae4d6e2ef50", "1e+21"],
    ["3eb0c6f7a0b5ed8c", "9.999999999999997e-7"],
    ["3eb0c6f7a0b5ed8d", "0.000001"],
    ["41b3de4355555553", "333333333.3333332"],
    ["41b3de4355555554", "333333333.33333325"],
    ["41b3de4355555555", "333333333.3333333"],
    ["41b3de4355555556", "333333333.3333334"],
    ["41b3de4355555557", "333333333.33333343"],
    ["becbf647612f3696", "-0.0000033333333333333333"],
    ["43143ff3c1cb0959", "1424953923781206.2"],
  ])("writes the double %s as %s, as RFC 8785 appendix B does", (hex, text) => {
    expect(canonicalize(bits(hex))).toBe(text);
  });

  it("gives the example of RFC 8785 section 3.2.2", () => {
    const input = String.raw`{
      "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
      "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
      "literals": [null, true, false]
    }`;
    expect(canonicalize(JSON.parse(input))).toBe(
      String.raw`{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\u000f\nA'B\"\\\\\"/"}`,
    );
  });

  it("sorts keys by UTF-16 code units, as in RFC 8785 section 3.2.3", () => {
    const input = {
      "\u20ac": "Euro Sign",
      "\r": "Carriage Return",
      "\ufb33": "Hebrew Letter Dalet With Dagesh",
      "1": "One",
      "\ud83d\ude00": "Emoji: Grinning Face",
      "\u0080": "Control",
      "\u00f6": "Latin Small Letter O With Diaeresis",
    };
    expect(canonicalize(input)).toBe(
      '{"\\r":"Carriage Return","1":"One","\u0080":"Control","ö":"Latin Small Letter O With Diaeresis",' +
        '"€":"Euro Sign","😀":"Emoji: Grinning Face","\ufb33":"Hebrew Letter Dalet With Dagesh"}',
    );
  });

  it("escapes as RFC 8785 says: short forms, lower-case hex below U+0020, nothing else", () => {
    expect(canonicalize('\b\t\n\f\r"\\/\u0000\u001f\u007f\u2028é')).toBe(
      '"\\b\\t\\n\\f\\r\\"\\\\/\\u0000\\u001f\u007f\u2028é"',
    );
  });

  it("leaves out undefined properties and keeps __proto__ as a key", () => {
    expect(canonicalize({ a: undefined, b: 1 })).toBe('{"b":1}');
    expect(canonicalize(JSON.parse('{"__proto__":{"x":1}}'))).toBe('{"__proto__":{"x":1}}');
  });

  it.each([
    ["NaN", { a: [1, Number.NaN] }, "non-finite-number", "$.a[1]"],
    ["Infinity", [Number.POSITIVE_INFINITY], "non-finite-number", "$[0]"],
    ["-Infinity", Number.NEGATIVE_INFINITY, "non-finite-number", "$"],
    ["a lone high surrogate", { a: "x\ud800" }, "lone-surrogate", "$.a"],
    ["a lone low surrogate", ["\udc00x"], "lone-surrogate", "$[0]"],
    ["surrogates in the wrong order", "\udc00\ud800", "lone-surrogate", "$"],
    ["a lone surrogate in a key", { b: { "\ud800": 1 } }, "lone-surrogate", "$.b.\ud800"],
    ["a bigint", { n: 1n }, "not-json", "$.n"],
    ["a function", { f: () => 1 }, "not-json", "$.f"],
    ["a symbol", [Symbol("s")], "not-json", "$[0]"],
    ["undefined itself", undefined, "not-json", "$"],
    ["undefined in an array", [undefined], "not-json", "$[0]"],
    ["a hole in an array", new Array(1), "not-json", "$[0]"],
    ["a Date", { at: new Date(0) }, "not-json", "$.at"],
    ["a Map", { m: new Map() }, "not-json", "$.m"],
    ["a typed array", { t: new Float32Array(1) }, "not-json", "$.t"],
    ["a boxed string", { s: Object("x") }, "not-json", "$.s"],
    ["an object with its own toJSON", { toJSON: () => 1 }, "not-json", "$.toJSON"],
  ])("refuses %s and says where", (_name, value, code, path) => {
    expect(refusal(value)).toEqual([code, path]);
  });

  it(`takes ${MAX_DEPTH} levels and refuses one more, and a cycle`, () => {
    expect(canonicalize(nested(MAX_DEPTH))).toBe(oracle(nested(MAX_DEPTH)));
    expect(refusal(nested(MAX_DEPTH + 1))[0]).toBe("too-deep");
    const cycle: unknown[] = [];
    cycle.push(cycle);
    expect(refusal(cycle)[0]).toBe("too-deep");
  });
});

describe("isCanonical", () => {
  /** Writes `value` as JSON. Some results are valid but not canonical. */
  function noisy(value: Json, rng: Rng): string {
    const rare = (): boolean => rng.below(24) === 0;
    const space = (): string => (rare() ? " " : "");
    if (typeof value === "number" && rare()) return value === 0 ? "-0" : value.toExponential();
    if (typeof value === "string") return noisyString(value, rng);
    if (value === null || typeof value !== "object") return JSON.stringify(value);
    if (Array.isArray(value)) return `[${value.map((item) => space() + noisy(item, rng)).join(",")}]`;
    const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
    if (entries.length > 0 && rare()) entries.push(entries[rng.below(entries.length)]!);
    if (rare()) rng.shuffle(entries);
    return `{${entries.map(([key, item]) => `${noisyString(key, rng)}:${noisy(item, rng)}${space()}`).join(",")}}`;
  }

  function noisyString(value: string, rng: Rng): string {
    const text = JSON.stringify(value);
    const escapes = text.replaceAll(/[a-z/]/g, (c) =>
      rng.below(40) === 0 ? `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}` : c,
    );
    // Apply the escapes only if the text had no escape before.
    return text.includes("\\") ? text : escapes;
  }

  it("says exactly whether the text is the canonical form of the value it parses to", () => {
    const verdicts = { true: 0, false: 0 };
    fc.assert(
      fc.property(fc.oneof(json, integerKeys), fc.nat(), (value, seed) => {
        const text = noisy(value as Json, rngFrom(seed));
        const parsed: unknown = JSON.parse(text);
        const verdict = isCanonical(text, parsed);
        expect(verdict).toBe(canonicalize(parsed) === text);
        verdicts[`${verdict}`]++;
      }),
      { numRuns: 3000 },
    );
    // The property is meaningful only if both verdicts occurred often.
    expect(verdicts.true).toBeGreaterThan(300);
    expect(verdicts.false).toBeGreaterThan(300);
  });

  it("agrees on every text one edit away from a canonical one", () => {
    const edits = [" ", '"', "\\", "0", "1", ".", "e", "-", ",", "{", "}", "a", "u"];
    const text = canonicalize({
      "10": 1.5,
      "9": [true, "a\\ud800", { é: "\u0001" }],
      b: { a: -1e-7, b: "" },
    });
    let parsed = 0;
    for (let at = 0; at <= text.length; at++) {
      for (const edit of ["", ...edits]) {
        for (const rest of [text.slice(at), text.slice(at + 1)]) {
          const changed = text.slice(0, at) + edit + rest;
          let value: unknown;
          try {
            value = JSON.parse(changed);
          } catch {
            continue;
          }
          parsed++;
          let expected: boolean;
          try {
            expected = canonicalize(value) === changed;
          } catch {
            expected = false;
          }
          expect(isCanonical(changed, value), changed).toBe(expected);
        }
      }
    }
    expect(parsed).toBeGreaterThan(200);
  });

  it.each([
    ['{"10":1,"9":2}', true],
    ['{"9":2,"10":1}', false],
    ['{"a":1,"a":1}', false],
    ['{"a":1,"a":2}', false],
    ['{"b":1,"a":2}', false],
    ['{"a":"\\u0041"}', false],
    ['"\\ud800"', false],
    ['"\\uD800"', false],
    ['"\\\\ud800"', true],
    ['"\\u000F"', false],
    ['"\\u000f"', true],
    ['"\\/"', false],
    ["-0", false],
    ["1e999", false],
    ["1.0", false],
    ["[1, 2]", false],
    ['{"__proto__":1}', true],
  ])("%s is canonical: %s", (text, expected) => {
    expect(isCanonical(text, JSON.parse(text))).toBe(expected);
  });

  it.each([
    [MAX_DEPTH, true],
    [MAX_DEPTH + 1, false],
    [100_000, false],
  ])("an array %i levels deep is canonical: %s", (levels, expected) => {
    const text = "[".repeat(levels) + "]".repeat(levels);
    expect(isCanonical(text, JSON.parse(text))).toBe(expected);
  });
});
