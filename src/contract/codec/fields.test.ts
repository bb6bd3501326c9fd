import fc from "fast-check";
import { describe, expect, test } from "vitest";
import * as z from "zod";
import { anyId, anyJson, anyU64 } from "../../../test/support/arbitraries.ts";
import { refusalOf } from "../../../test/support/refusal-of.ts";
import { canonicalize } from "../../base/canonical-json.ts";
import { digestJson } from "../../base/digest.ts";
import { environmentKey } from "../task/environment.ts";
import { count, digest, digestsIn, finite, id, json, jsonObject, text, u64 } from "./fields.ts";
import { refuseIssues } from "./record.ts";

const read = <T extends z.ZodType>(schema: T, value: unknown): z.output<T> => {
  const result = z.safeDecode(schema, value as never);
  if (!result.success) throw refuseIssues(result.error.issues, value, "field");
  return result.data;
};
const codeOf = (schema: z.ZodType, value: unknown) => refusalOf(() => read(schema, value)).code;

describe("ids", () => {
  test("any id passes as itself", () => {
    fc.assert(fc.property(anyId, (name) => read(id, name) === name));
  });

  test.each([
    ["nothing", ""],
    ["@", "a@b"],
    ["|", "a|b"],
    ["a slash", "a/b"],
    ["a backslash", "a\\b"],
    ["a path upwards", ".."],
    ["a hidden path upwards", "../x"],
    ["a control character", "a\u0007"],
    ["a line break", "a\nb"],
    ["an invisible character", "a\u200bb"],
    ["a direction override", "a\u202eb"],
    ["a leading space", " a"],
    ["a lone surrogate", "a\ud800"],
    ["257 bytes", "x".repeat(257)],
    ["257 bytes in fewer characters", "\u{1f600}".repeat(65)],
  ])("%s is refused as bad-id", (_, bad) => {
    expect(codeOf(id, bad)).toBe("bad-id");
    expect(codeOf(environmentKey, `${bad}@1`)).toBe("bad-id");
    expect(codeOf(environmentKey, `env@${bad}`)).toBe("bad-id");
  });

  test("a number or null is no id, and the message says what was expected", () => {
    for (const bad of [7, null, undefined, {}]) expect(codeOf(id, bad)).toBe("bad-record");
    expect(codeOf(environmentKey, "env")).toBe("bad-id");
    expect(refusalOf(() => read(environmentKey, "env")).message).toContain("ref@version");
  });
});

describe("u64", () => {
  test("every u64 passes between decimal string and bigint without loss", () => {
    fc.assert(
      fc.property(anyU64, (wire) => {
        expect(read(u64, wire)).toBe(BigInt(wire));
        expect(z.encode(u64, BigInt(wire))).toBe(wire);
      }),
    );
    for (const wire of ["0", "9007199254740993", "18446744073709551615"])
      expect(String(read(u64, wire))).toBe(wire);
  });

  test.each([
    "",
    "-1",
    "+1",
    "01",
    "1.0",
    "1e3",
    " 1",
    "0x10",
    "18446744073709551616",
    "9".repeat(100),
    1,
    null,
  ])("%j is refused", (bad) => {
    expect(codeOf(u64, bad)).toBe("bad-record");
  });
});

describe("numbers and text", () => {
  test("NaN and infinity are refused by that name", () => {
    for (const bad of [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]) {
      expect(codeOf(finite, bad)).toBe("non-finite-number");
      expect(codeOf(count, bad)).toBe("non-finite-number");
      expect(codeOf(json, { a: [bad] })).toBe("non-finite-number");
    }
  });

  test("a count is a whole number from 0 to 2^53−1", () => {
    expect(read(count, Number.MAX_SAFE_INTEGER)).toBe(Number.MAX_SAFE_INTEGER);
    for (const bad of [-1, 0.5, 2 ** 53, "1"]) expect(codeOf(count, bad)).toBe("bad-record");
  });

  test("a digest is sha256: and 64 lower-case hex digits", () => {
    expect(read(digest, digestJson("test", 1))).toBe(digestJson("test", 1));
    for (const bad of [
      "sha256:00",
      digestJson("test", 1).toUpperCase(),
      `${digestJson("test", 1)}\n`,
      "00".repeat(32),
    ])
      expect(codeOf(digest, bad)).toBe("bad-record");
  });

  test("text is bounded and well-formed", () => {
    expect(read(text(4), "abcd")).toBe("abcd");
    expect(codeOf(text(4), "abcde")).toBe("bad-record");
    expect(codeOf(text(), "\udc00")).toBe("bad-record");
  });
});

describe("free JSON", () => {
  test("any JSON is handed on as it is, __proto__ keys included", () => {
    fc.assert(
      fc.property(anyJson, (value) => {
        expect(read(json, value)).toBe(value);
      }),
    );
    const hostile = JSON.parse('{"__proto__":{"a":1}}');
    expect(canonicalize(read(jsonObject, hostile))).toBe('{"__proto__":{"a":1}}');
  });

  test("what JSON cannot carry is refused with its place", () => {
    const refused = (value: unknown) => refusalOf(() => read(json, value)).fields.field;
    expect(refused({ a: [1, { b: undefined }] })).toBe("$.a[1].b");
    expect(refused({ a: 1n })).toBe("$.a");
    expect(refused({ a: new Date(0) })).toBe("$.a");
    expect(refused({ a: () => 1 })).toBe("$.a");
    expect(refused({ "\ud800": 1 })).toBe("$");
    for (const bad of [[], null, "x", 7, undefined]) expect(codeOf(jsonObject, bad)).toBe("bad-record");
  });

  test("nesting ends at 128 levels", () => {
    const nest = (depth: number) => JSON.parse("[".repeat(depth) + "]".repeat(depth));
    expect(canonicalize(read(json, nest(128)))).toHaveLength(256);
    expect(codeOf(json, nest(129))).toBe("bad-record");
  });
});

test("digestsIn finds every digest, however deep, and nothing else", () => {
  const [a, b] = [digestJson("test", "a"), digestJson("test", "b")];
  expect(digestsIn({ x: [a, { y: b, z: "sha256:no" }], n: 1, m: null })).toEqual([a, b]);
});
