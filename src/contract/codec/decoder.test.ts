import fc from "fast-check";
import { describe, expect, test } from "vitest";
import * as z from "zod";
import { anyJson } from "../../../test/support/arbitraries.ts";
import { d, exampleWire } from "../../../test/support/examples.ts";
import { draftWire, stepWire } from "../../../test/support/shelf.ts";
import { canonicalize } from "../../base/canonical-json.ts";
import { rngFrom } from "../../base/rng.ts";
import { RECORD_TYPES } from "../records.ts";
import { RolloutContent } from "../rollout/rollout.ts";
import { RolloutDraft } from "../rollout/rollout-draft.ts";
import { INVALID } from "./byte-source.ts";
import { compileDecoder } from "./decoder.ts";
import { json, u64 } from "./fields.ts";
import { decodeWire, parseCanonical, seal } from "./record.ts";

const BITS: readonly unknown[] = [
  ...[undefined, null, true, 0, -1, 0.5, 1, 2 ** 53, Number.NaN, Number.POSITIVE_INFINITY, 5n, "", "x", "7"],
  ...["18446744073709551616", "a/b", "a@b", "token", "terminal", `sha256:${"0".repeat(64)}`, "\ud800"],
  ...[
    [],
    {},
    [null],
    [[0, 1, 2]],
    { id: "x" },
    { kind: "terminal" },
    { kind: "failed" },
    JSON.parse('{"__proto__":1}'),
  ],
];

/** Replaces or drops one random part of `value`, or adds a random value beside it. */
function mutate(value: unknown, rng: ReturnType<typeof rngFrom>): unknown {
  const bit = () => BITS[rng.below(BITS.length)];
  if (typeof value !== "object" || value === null || rng.below(8) === 0) return bit();
  const keys = Object.keys(value);
  if (Array.isArray(value)) {
    if (keys.length === 0 || rng.below(6) === 0) return [...value, bit()];
    const at = rng.below(keys.length);
    return rng.below(6) === 0 ? value.toSpliced(at, 1) : value.with(at, mutate(value[at], rng));
  }
  if (keys.length === 0 || rng.below(8) === 0)
    return { ...value, [rng.below(2) ? "stranger" : "schema"]: bit() };
  const key = keys[rng.below(keys.length)]!;
  const { [key]: item, ...rest } = value as Record<string, unknown>;
  return rng.below(6) === 0 ? rest : { ...value, [key]: mutate(item, rng) };
}

const PIECES = [
  ...["", " ", ",", ":", "0", "1", "-", "-0", "1.0", "0.5", "1e5", "1e+21", "9007199254740993", "00", '"'],
  ...[
    "\\",
    "\\n",
    "\\u0041",
    "\\ud800",
    "\u007f",
    "\u0001",
    "é",
    "\u{1f600}",
    "null",
    "true",
    "[]",
    "{}",
    '"a":1,',
  ],
  ...[',"zz":1', "F"],
].map((piece) => Buffer.from(piece));
PIECES.push(Buffer.of(0xe9), Buffer.of(0xed, 0xa0, 0x80), Buffer.of(0xef, 0xbb, 0xbf));

/** Inserts a piece into canonical bytes, or overwrites a part of them with it. */
function damage(bytes: Uint8Array, rng: ReturnType<typeof rngFrom>): Buffer {
  const at = rng.below(bytes.length + 1);
  const piece = PIECES[rng.below(PIECES.length)]!;
  return Buffer.concat([bytes.subarray(0, at), piece, bytes.subarray(at + rng.below(4))]);
}

/** Reference for the decoder, step by step: text, JSON.parse, canonical form, zod. */
function decodeSlowly(schema: z.ZodType, bytes: Uint8Array): unknown {
  try {
    return z.decode(schema, parseCanonical(bytes, "here") as never);
  } catch {
    return INVALID;
  }
}

const bytesOf = (value: unknown) => Buffer.from(canonicalize(value));

describe("the compiled decoder", () => {
  const { streams } = draftWire("r") as { streams: object[] };
  const subjects = [
    ...RECORD_TYPES.map((type) => ({ type, wire: exampleWire(type.kind) })),
    { type: RolloutDraft, wire: draftWire("r", { streams: [...streams, stepWire()] }) },
  ].map(({ type, wire }) => [type.kind, type, wire] as const);

  test.each(subjects)("accepts of %s exactly what zod accepts, and decodes it alike", (_, type, wire) => {
    const rng = rngFrom(9);
    let accepted = 0;
    for (let i = 0; i < 400; i++) {
      let value: unknown = wire;
      for (let times = rng.below(3); times > 0; times--) value = mutate(value, rng);
      let bytes: Buffer;
      try {
        bytes = bytesOf(value);
      } catch {
        continue;
      }
      const decoded = type.decode(bytes);
      expect(decoded, bytes.toString()).toEqual(decodeSlowly(type.schema, bytes));
      if (decoded !== INVALID) accepted++;
    }
    expect(accepted).toBeGreaterThan(50);
  });

  test.each(subjects)(
    "of damaged %s, accepts exactly what zod and the canonical form accept",
    (_, type, wire) => {
      const rng = rngFrom(4);
      const whole = bytesOf(wire);
      let accepted = 0;
      for (let i = 0; i < 600; i++) {
        const bytes = damage(rng.below(4) === 0 ? damage(whole, rng) : whole, rng);
        const decoded = type.decode(bytes);
        if (decoded !== INVALID) accepted++;
        expect(decoded, bytes.toString()).toEqual(decodeSlowly(type.schema, bytes));
      }
      expect(accepted).toBeGreaterThan(5);
    },
  );

  test("any JSON is read, in canonical form only", () => {
    const schema = z.strictObject({ any: json });
    const decode = compileDecoder(schema);
    const rng = rngFrom(6);
    fc.assert(
      fc.property(anyJson, (any) => {
        const text = canonicalize({ any });
        expect(decode(Buffer.from(text))).toStrictEqual(JSON.parse(text));
        for (let i = 0; i < 10; i++) {
          const bytes = damage(Buffer.from(text), rng);
          expect(decode(bytes), bytes.toString()).toStrictEqual(decodeSlowly(schema, bytes));
        }
      }),
      { numRuns: 500 },
    );
  });

  test("maps, unions of any kind and tuples are decoded as zod decodes them", () => {
    const schema = z.strictObject({
      dict: z.record(z.string().max(3), z.union([z.string().max(2), z.boolean(), z.literal("long")])),
      wide: z.record(z.string(), u64),
      pair: z.nullable(z.tuple([z.number(), z.nullable(z.string())])),
    });
    const decode = compileDecoder(schema);
    const good = { dict: { x: "ab", y: true, z: "long" }, wide: { n: "7" }, pair: [1, "a"] };
    expect(decode(bytesOf(good))).toEqual({ ...good, wide: { n: 7n } });
    for (const over of [
      { pair: null },
      { pair: [1, null] },
      { dict: { long: "ab" } },
      { dict: { x: "abc" } },
      { dict: [] },
      { wide: { n: 7 } },
      { pair: [1] },
      { pair: [1, 2] },
      { pair: [1, "a", "b"] },
    ]) {
      const bytes = bytesOf({ ...good, ...over });
      expect(decode(bytes), bytes.toString()).toEqual(decodeSlowly(schema, bytes));
    }
  });

  test("a map keeps a key named __proto__, and so do the bytes sealed from it", () => {
    const configs = JSON.parse(`{"__proto__":"${d("x")}"}`);
    const wire = { ...(exampleWire(RolloutContent.kind) as object), configs };
    const record = decodeWire(RolloutContent, wire, "here");
    expect(Object.keys(record.configs!)).toEqual(["__proto__"]);
    expect(Buffer.from(seal(RolloutContent, record).bytes).toString()).toBe(canonicalize(wire));
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
    const decode = compileDecoder(z.array(z.number()).min(1).max(2));
    expect(decode(Buffer.from(text))).toStrictEqual(expected);
  });

  test("a string is read with its escapes and its letters, and not where another form is the canonical one", () => {
    const decode = compileDecoder(z.array(z.string()));
    for (const text of ['["é","é","a\\nb","\\"","\u{1f600}"]', '["\ufeffa"]'])
      expect(decode(Buffer.from(text))).toEqual(JSON.parse(text));
    for (const text of ['["\\u00e9"]', '["\\/"]', '["\\ud800"]', '["\\u000A"]', '["a', '["\\"]', '["\n"]'])
      expect(decode(Buffer.from(text)), text).toBe(INVALID);
  });

  test("nesting ends where canonical JSON ends", () => {
    const decode = compileDecoder(json);
    const nested = (levels: number) => Buffer.from("[".repeat(levels) + "]".repeat(levels));
    expect(decode(nested(128))).not.toBe(INVALID);
    expect(decode(nested(129))).toBe(INVALID);
  });

  test.each([
    ["an object that keeps unknown keys", z.object({ a: z.number() })],
    ["a format of its own", z.int()],
    ["a transform", z.string().transform((text) => text.length)],
    ["a tuple of any length", z.tuple([z.number()], z.string())],
    ["a pattern with a memory", z.string().regex(/x/g)],
    ["a check that changes the value", z.string().trim()],
    ["a default", z.string().default("x")],
  ])("%s cannot be compiled", (_, schema) => {
    expect(() => compileDecoder(z.strictObject({ field: schema }))).toThrow("cannot compile");
  });
});
