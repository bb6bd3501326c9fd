import { describe, expect, test } from "vitest";
import { z } from "zod";
import { exampleWire } from "../../../test/support/examples.ts";
import { draftWire, stepWire } from "../../../test/support/shelf.ts";
import { rngFrom } from "../../base/rng.ts";
import { RECORD_TYPES } from "../records.ts";
import { RolloutDraft } from "../rollout/rollout-draft.ts";
import { compileDecoder, INVALID } from "./decoder.ts";

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

  test("constructs it does not know are left to zod", () => {
    const odd = z.strictObject({
      loose: z.object({ a: z.number() }),
      either: z.union([z.string(), z.number()]),
      whole: z.int(),
      mapped: z.string().transform((text) => text.length),
      many: z.tuple([z.number()], z.string()),
      dict: z.record(z.string(), z.number()),
      even: z.array(z.number()).refine((list) => list.length % 2 === 0),
      global: z.string().regex(/x/g),
    });
    const good = {
      loose: { a: 1, extra: 2 },
      either: 3,
      whole: 4,
      mapped: "four",
      many: [1, "a", "b"],
      dict: { x: 1 },
      even: [1, 2],
      global: "xx",
    };
    const decode = compileDecoder(odd);
    for (let round = 0; round < 3; round++) expect(decode(good)).toEqual(odd.parse(good));
    for (const over of [
      { whole: 0.5 },
      { either: null },
      { many: [1, 2] },
      { even: [1] },
      { dict: { x: "y" } },
    ])
      expect(decode({ ...good, ...over })).toBe(INVALID);
  });
});
