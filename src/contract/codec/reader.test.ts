import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { anyJson } from "../../../test/support/arbitraries.ts";
import { exampleWire } from "../../../test/support/examples.ts";
import { canonicalize } from "../../base/canonical-json.ts";
import { rngFrom } from "../../base/rng.ts";
import { RECORD_TYPES } from "../records.ts";
import { INVALID } from "./decoder.ts";
import { json } from "./fields.ts";
import { compileReader } from "./reader.ts";
import { decodeWire, parseCanonical } from "./record.ts";

/** What the reader stands for, the long way; rules beyond the schema are left out, as the reader leaves them out. */
function readSlowly(type: (typeof RECORD_TYPES)[number], bytes: Uint8Array): unknown {
  try {
    return decodeWire({ ...type, check: () => {} }, parseCanonical(bytes, "here"), "here");
  } catch {
    return INVALID;
  }
}

const PIECES = [
  ...["", " ", ",", ":", "0", "1", "-", "-0", "1.0", "0.5", "1e5", "1e+21", "9007199254740993", "00", '"'],
  ...["\\", "\\n", "\\u0041", "\u007f", "\u0001", "é", "null", "true", "[]", "{}", '"a":1,', ',"zz":1', "F"],
].map((piece) => Buffer.from(piece));

/** Canonical bytes with one piece put in, or in the place of something. */
function damage(bytes: Uint8Array, rng: ReturnType<typeof rngFrom>): Buffer {
  const at = rng.below(bytes.length + 1);
  const piece = PIECES[rng.below(PIECES.length)]!;
  return Buffer.concat([bytes.subarray(0, at), piece, bytes.subarray(at + rng.below(4))]);
}

describe("the compiled reader", () => {
  test.each(RECORD_TYPES.map((type) => [type.kind, type] as const))(
    "reads %s itself, and as the long way does",
    (kind, type) => {
      const bytes = Buffer.from(canonicalize(exampleWire(kind)));
      expect(type.read(bytes)).not.toBe(INVALID);
      expect(type.read(bytes)).toStrictEqual(readSlowly(type, bytes));
    },
  );

  test.each(RECORD_TYPES.map((type) => [type.kind, type] as const))(
    "of damaged %s, accepts only what the long way accepts, and reads it alike",
    (kind, type) => {
      const rng = rngFrom(4);
      const whole = Buffer.from(canonicalize(exampleWire(kind)));
      let accepted = 0;
      for (let i = 0; i < 1500; i++) {
        const bytes = damage(rng.below(4) === 0 ? damage(whole, rng) : whole, rng);
        const fast = type.read(bytes);
        if (fast === INVALID) continue;
        accepted++;
        expect(readSlowly(type, bytes), bytes.toString()).toStrictEqual(fast);
      }
      expect(accepted).toBeGreaterThan(5);
    },
  );

  test("any JSON without escapes, foreign letters and __proto__ is read, in canonical form only", () => {
    const read = compileReader(z.strictObject({ any: json }));
    const rng = rngFrom(6);
    fc.assert(
      fc.property(anyJson, (any) => {
        const text = canonicalize({ any });
        const isPlain = /^[\u0020-\u005b\u005d-\u007f]*$/.test(text) && !text.includes('"__proto__":');
        expect(read(Buffer.from(text))).toStrictEqual(isPlain ? JSON.parse(text) : INVALID);
        for (let i = 0; i < 10; i++) {
          const bytes = damage(Buffer.from(text), rng);
          const fast = read(bytes);
          if (fast !== INVALID) expect(parseCanonical(bytes, "here")).toStrictEqual(fast);
        }
      }),
      { numRuns: 500 },
    );
  });

  test.each([
    ["[1,2]", [1, 2]],
    ["[]", INVALID], // min
    ["[1,2,3]", INVALID], // max
    ["[1,]", INVALID],
    ["[1 ,2]", INVALID],
    ["[1,2]x", INVALID],
    ["[01]", INVALID],
    ["[-0]", INVALID],
    ["[1.50]", INVALID],
    ["[1.5]", [1.5]],
    ["[1e+21]", [1e21]],
    ["[1e21]", INVALID],
    ["[123456789012345680000]", [123456789012345680000]],
    ["[12345678901234567890]", INVALID],
    ["[", INVALID],
    ["", INVALID],
  ])("numbers of a list: %s", (text, expected) => {
    const read = compileReader(z.array(z.number()).min(1).max(2));
    expect(read(Buffer.from(text))).toStrictEqual(expected);
  });

  test("a union is the first member that fits, and null may stand where it is allowed", () => {
    const read = compileReader(
      z.array(z.nullable(z.union([z.string().max(2), z.boolean(), z.literal("long")]))),
    );
    expect(read(Buffer.from('["ab",true,null,"long"]'))).toStrictEqual(["ab", true, null, "long"]);
    expect(read(Buffer.from('["abc"]'))).toBe(INVALID);
  });

  test("nesting beyond its limit is left to the long way", () => {
    const read = compileReader(json);
    const nested = (levels: number) => Buffer.from("[".repeat(levels) + "]".repeat(levels));
    expect(read(nested(64))).not.toBe(INVALID);
    expect(read(nested(65))).toBe(INVALID);
  });
});
