import { describe, expect, test } from "vitest";
import { z } from "zod";
import { d, exampleWire } from "../../../test/support/examples.ts";
import { draftWire, stepWire } from "../../../test/support/shelf.ts";
import { canonicalize } from "../../base/canonical-json.ts";
import { rngFrom } from "../../base/rng.ts";
import { RECORD_TYPES } from "../records.ts";
import { RolloutContent } from "../rollout/rollout.ts";
import { RolloutDraft } from "../rollout/rollout-draft.ts";
import { compileDecoder, INVALID } from "./decoder.ts";
import { u64 } from "./fields.ts";
import { decodeWire, seal } from "./record.ts";

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

/** One random place of `value` replaced, dropped or joined by a stranger. */
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

describe("the compiled decoder", () => {
  const { streams } = draftWire("r") as { streams: object[] };
  const subjects = [
    ...RECORD_TYPES.map((type) => ({ type, wire: exampleWire(type.kind) })),
    { type: RolloutDraft, wire: draftWire("r", { streams: [...streams, stepWire()] }) },
  ];

  test.each(subjects.map(({ type, wire }) => [type.kind, type, wire] as const))(
    "accepts of %s exactly what zod accepts, and decodes it alike",
    (_, type, wire) => {
      const rng = rngFrom(9);
      let accepted = 0;
      for (let i = 0; i < 400; i++) {
        let value: unknown = wire;
        for (let times = rng.below(3); times > 0; times--) value = mutate(value, rng);
        const before = structuredClone(value);
        const fast = type.decode(value);
        const slow = z.safeDecode(type.schema as z.ZodType, value as never);
        if ((fast !== INVALID) !== slow.success) expect.fail(`differs on ${String(slow.error)}`);
        if (slow.success) expect(fast).toEqual(slow.data);
        if (slow.success) accepted++;
        expect(value, "the input is left alone").toEqual(before);
      }
      expect(accepted).toBeGreaterThan(50);
    },
  );

  test("what nothing changes is handed on, not copied", () => {
    const value = { a: [{ b: 1 }] };
    const decode = compileDecoder(z.strictObject({ a: z.array(z.strictObject({ b: z.number() })) }));
    expect(decode(value)).toBe(value);
  });

  test("maps, unions of any kind and tuples are decoded as zod decodes them", () => {
    const schema = z.strictObject({
      dict: z.record(z.string().max(3), z.union([z.string().max(2), z.boolean(), z.literal("long")])),
      wide: z.record(z.string(), u64),
      pair: z.nullable(z.tuple([z.number(), z.string()])),
    });
    const good = { dict: { x: "ab", y: true, z: "long" }, wide: { n: "7" }, pair: [1, "a"] };
    const decode = compileDecoder(schema);
    expect(decode(good)).toEqual(z.decode(schema, good as never));
    expect(decode({ ...good, pair: null })).toEqual({ ...good, wide: { n: 7n }, pair: null });
    for (const over of [
      { dict: { long: "ab" } },
      { dict: { x: "abc" } },
      { dict: [] },
      { wide: { n: 7 } },
      { pair: [1] },
      { pair: [1, 2] },
    ])
      expect(decode({ ...good, ...over })).toBe(INVALID);
  });

  test("a map keeps a key named __proto__, and so do the bytes sealed from it", () => {
    const configs = JSON.parse(`{"__proto__":"${d("x")}"}`);
    const wire = { ...(exampleWire(RolloutContent.kind) as object), configs };
    const record = decodeWire(RolloutContent, wire, "here");
    expect(Object.keys(record.configs!)).toEqual(["__proto__"]);
    expect(Buffer.from(seal(RolloutContent, record).bytes).toString()).toBe(canonicalize(wire));
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
