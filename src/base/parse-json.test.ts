import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { canonicalize, MAX_DEPTH } from "./canonical-json.ts";
import { isRollbookError, type RollbookError } from "./errors.ts";
import { decodeUtf8, parseJson } from "./parse-json.ts";

const json = fc.jsonValue({ stringUnit: "binary", maxDepth: 6 });

function refusal(act: () => unknown): RollbookError {
  try {
    act();
  } catch (error) {
    if (isRollbookError(error)) return error;
    throw error;
  }
  throw new Error("accepted");
}

describe("parseJson", () => {
  it("agrees with JSON.parse on any JSON text, compact or indented", () => {
    fc.assert(
      fc.property(json, fc.constantFrom(undefined, 1, "\t", "\r\n  "), (value, indent) => {
        const text = JSON.stringify(value, null, indent);
        expect(parseJson(text)).toStrictEqual(JSON.parse(text));
      }),
      { numRuns: 2000 },
    );
  });

  it("accepts a text exactly when JSON.parse does, save for what records must not hold", () => {
    // Random edits of a valid text: most results are invalid, some are still valid.
    const edit = fc.record({
      at: fc.nat(400),
      cut: fc.nat(2),
      put: fc.constantFrom("", '"', "\\", "0", "1e5", ",", ":", "{", "]", "\n", "\u0001", "true", "u00e9"),
    });
    let accepted = 0;
    let refused = 0;
    fc.assert(
      fc.property(json, fc.array(edit, { minLength: 1, maxLength: 3 }), (value, edits) => {
        let text = JSON.stringify(value);
        for (const { at, cut, put } of edits) {
          const where = at % (text.length + 1);
          text = text.slice(0, where) + put + text.slice(where + cut);
        }
        let expected: unknown;
        try {
          expected = JSON.parse(text);
        } catch {
          refused++;
          expect(refusal(() => parseJson(text)).fields.line).toBeTypeOf("number");
          return;
        }
        accepted++;
        try {
          expect(parseJson(text)).toStrictEqual(expected);
        } catch (error) {
          if (!isRollbookError(error)) throw error;
          expect(["duplicate-key", "lone-surrogate", "non-finite-number"]).toContain(error.code);
        }
      }),
      { numRuns: 4000 },
    );
    expect(accepted).toBeGreaterThan(100);
    expect(refused).toBeGreaterThan(100);
  });

  it("refuses every truncation of a text", () => {
    const text = '{"a":[1.5e3,-2,"x\\u00e9\\"y",true,false,null,{}],"b":{"c":[]}}';
    parseJson(text);
    for (let length = 0; length < text.length; length++) {
      const error = refusal(() => parseJson(text.slice(0, length)));
      expect(error.code).toBe("bad-json");
      expect(error.fields.line).toBe(1);
      expect(error.fields.column).toBeLessThanOrEqual(length + 1);
    }
  });

  it("says file, line and column of the fault, and what to do", () => {
    const error = refusal(() => parseJson('{\n  "a": 1,\n  "b": tru\n}', "runs/a.json"));
    expect(error.fields).toEqual({ where: "runs/a.json", line: 3, column: 8 });
    expect(error.message).toBe("runs/a.json:3:8: expected a JSON value. Correct the JSON and try again.");
  });

  it.each([
    ['{"a":1,"a":2}', "duplicate-key", 1, 8],
    ['{"a":{"b":1},\n"a":{"b":1}}', "duplicate-key", 2, 1],
    ['{"a":1,"\\u0061":2}', "duplicate-key", 1, 8],
    ['{"__proto__":1,"__proto__":2}', "duplicate-key", 1, 16],
    ['["\\ud800"]', "lone-surrogate", 1, 2],
    ['["\\udc00\\ud800"]', "lone-surrogate", 1, 2],
    ['["\ud800"]', "lone-surrogate", 1, 2],
    ["[1, 1e400]", "non-finite-number", 1, 5],
    ["-1e400", "non-finite-number", 1, 1],
    ["1 2", "bad-json", 1, 3],
    ["{} x", "bad-json", 1, 4],
    ["[1,]", "bad-json", 1, 4],
    ['{"a":1,}', "bad-json", 1, 8],
    ["{'a':1}", "bad-json", 1, 2],
    ["[01]", "bad-json", 1, 3],
    ["[+1]", "bad-json", 1, 2],
    ["[.5]", "bad-json", 1, 2],
    ["[1.]", "bad-json", 1, 3],
    ["[-]", "bad-json", 1, 2],
    ["[NaN]", "bad-json", 1, 2],
    ['["\t"]', "bad-json", 1, 2],
    ['["\\x"]', "bad-json", 1, 2],
    ["\ufeff1", "bad-json", 1, 1],
    ["\u00a01", "bad-json", 1, 1],
    ["", "bad-json", 1, 1],
  ])("refuses %j as %s at %i:%i", (text, code, line, column) => {
    const error = refusal(() => parseJson(text));
    expect([error.code, error.fields.line, error.fields.column]).toEqual([code, line, column]);
  });

  it("keeps __proto__, constructor and toString as own keys and changes no prototype", () => {
    const value = parseJson('{"__proto__":{"polluted":true},"constructor":1,"toString":2}') as Record<
      string,
      unknown
    >;
    expect(Object.keys(value)).toEqual(["__proto__", "constructor", "toString"]);
    expect(Object.getPrototypeOf(value)).toBe(Object.prototype);
    expect(({} as Record<string, unknown>).polluted).toBeUndefined();
  });

  it(`takes ${MAX_DEPTH} levels, as canonicalize does, and refuses one more, however many follow`, () => {
    const nest = (levels: number): string => `${'{"k":['.repeat(levels / 2)}1${"]}".repeat(levels / 2)}`;
    expect(canonicalize(parseJson(nest(MAX_DEPTH)))).toBe(nest(MAX_DEPTH));
    expect(refusal(() => parseJson(nest(MAX_DEPTH + 2))).code).toBe("too-deep");
    expect(refusal(() => parseJson(`${"[".repeat(MAX_DEPTH)}[]`)).code).toBe("too-deep");
    expect(refusal(() => parseJson("[".repeat(1_000_000))).code).toBe("too-deep");
  });

  it("reads very long strings, with and without escapes, in time that grows with their length alone", () => {
    const long = "x".repeat(20_000_000);
    expect(parseJson(`"${long}"`)).toHaveLength(20_000_000);
    expect(parseJson(`"${long}\\n"`)).toHaveLength(20_000_001);
    expect(refusal(() => parseJson(`"${long}`)).code).toBe("bad-json");
    const quotes = '\\"'.repeat(1_000_000);
    expect(parseJson(`"${quotes}"`)).toBe('"'.repeat(1_000_000));
    expect(parseJson(`"${"\\\\".repeat(1_000_000)}"`)).toBe("\\".repeat(1_000_000));
  }, 10_000);
});

describe("decodeUtf8", () => {
  it("gives back any text, a leading byte order mark included", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (text) => {
        expect(decodeUtf8(Buffer.from(text))).toBe(text);
      }),
    );
    expect(decodeUtf8(Uint8Array.of(0xef, 0xbb, 0xbf, 0x31))).toBe("\ufeff1");
  });

  it.each([
    ["a stray continuation byte", [0x80]],
    ["a cut sequence", [0xe2, 0x82]],
    ["an overlong form", [0xc0, 0xaf]],
    ["an encoded surrogate", [0xed, 0xa0, 0x80]],
    ["a code point past U+10FFFF", [0xf4, 0x90, 0x80, 0x80]],
  ])("refuses %s, naming the file", (_name, bytes) => {
    const error = refusal(() => decodeUtf8(Uint8Array.from(bytes), "runs/a.json"));
    expect([error.code, error.fields.where]).toEqual(["bad-json", "runs/a.json"]);
    expect(error.cause).toBeInstanceOf(TypeError);
  });
});
