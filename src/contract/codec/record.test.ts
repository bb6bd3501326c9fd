import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { anyRolloutWire } from "../../../test/support/arbitraries.ts";
import { examples, exampleWire } from "../../../test/support/examples.ts";
import { refusalOf } from "../../../test/support/refusal-of.ts";
import { canonicalize } from "../../base/canonical-json.ts";
import { digestBytes } from "../../base/digest.ts";
import { isRollbookError } from "../../base/errors.ts";
import { type Rng, rngFrom } from "../../base/rng.ts";
import { PolicyRevision } from "../policy/policy-revision.ts";
import { RECORD_TYPES, recordType } from "../records.ts";
import { parseRolloutDraft, sealRollout } from "../rollout/rollout-draft.ts";
import { decodeWire, encodeWire, openRecord, type RecordType, seal } from "./record.ts";

const bytesOf = (text: string) => Buffer.from(text);
const reseal = (type: RecordType, wire: unknown) => seal(type, decodeWire(type, wire, type.kind) as never);

describe("sealing", () => {
  test("every record kind opens to what was sealed, and seals to the same bytes again", () => {
    for (const sealed of examples()) {
      const type = recordType(sealed.kind)!;
      const opened = openRecord(type, sealed.bytes);
      expect(opened).toEqual(sealed.record);
      expect(encodeWire(type, opened)).toEqual(exampleWire(sealed.kind));
      expect(seal(type, opened as never).bytes).toEqual(sealed.bytes);
    }
  });

  test("any valid rollout opens to what was sealed", () => {
    fc.assert(
      fc.property(anyRolloutWire, (wire) => {
        const { content, envelope } = sealRollout(parseRolloutDraft(wire));
        for (const sealed of [content, envelope]) {
          const type = recordType(sealed.kind)!;
          expect(openRecord(type, sealed.bytes)).toEqual(sealed.record);
          expect(digestBytes(sealed.kind, sealed.bytes)).toBe(sealed.digest);
        }
      }),
      { numRuns: 300 },
    );
  });

  test("the order of keys leaves no trace", () => {
    const rng = rngFrom(3);
    for (const sealed of examples()) {
      for (let round = 0; round < 5; round++) {
        const wire = shuffleKeys(exampleWire(sealed.kind), rng);
        expect(reseal(recordType(sealed.kind)!, wire).digest).toBe(sealed.digest);
      }
    }
  });

  test("two kinds never share a digest, whatever their bytes", () => {
    const bytes = bytesOf("{}");
    expect(new Set(RECORD_TYPES.map((type) => digestBytes(type.kind, bytes))).size).toBe(RECORD_TYPES.length);
  });

  test("a bigint that is no u64 is refused at sealing", () => {
    const fields = decodeWire(PolicyRevision, exampleWire(PolicyRevision.kind), "x");
    for (const number of [-1n, 2n ** 64n])
      expect(refusalOf(() => seal(PolicyRevision, { ...fields, number })).fields.field).toBe("$.number");
    expect(seal(PolicyRevision, { ...fields, number: 2n ** 64n - 1n }).record.number).toBe(2n ** 64n - 1n);
  });
});

describe("single changes", () => {
  test("changing or dropping any field of any record changes its digest or is refused, naming the field", () => {
    let changed = 0;
    let refused = 0;
    for (const sealed of examples()) {
      const type = recordType(sealed.kind)!;
      const original = canonicalize(exampleWire(sealed.kind));
      for (const mutant of mutants(exampleWire(sealed.kind))) {
        if (canonicalize(mutant.wire) === original) continue;
        try {
          expect(reseal(type, mutant.wire).digest, `${sealed.kind} ${mutant.at}`).not.toBe(sealed.digest);
          changed++;
        } catch (error) {
          if (!isRollbookError(error)) throw error;
          expect(error.fields, `${sealed.kind} ${mutant.at}`).toHaveProperty("where");
          refused++;
        }
      }
    }
    expect(changed).toBeGreaterThan(300);
    expect(refused).toBeGreaterThan(300);
  });

  test("a byte changed, dropped or added is refused, or opens as another record with these very bytes", () => {
    const rng = rngFrom(11);
    for (const sealed of examples()) {
      const type = recordType(sealed.kind)!;
      for (let round = 0; round < 150; round++) {
        const bytes = corrupt(Buffer.from(sealed.bytes), rng, round);
        if (bytes.equals(sealed.bytes)) continue;
        expect(digestBytes(type.kind, bytes)).not.toBe(sealed.digest);
        let opened: unknown;
        try {
          opened = openRecord(type, bytes, "mutant");
        } catch (error) {
          if (!isRollbookError(error)) throw error;
          expect(error.fields.where).toBe("mutant");
          continue;
        }
        expect(Buffer.from(seal(type, opened as never).bytes).equals(bytes)).toBe(true);
      }
    }
  });
});

describe("opening", () => {
  const wire = exampleWire("rollbook.release.v1");
  const type = recordType("rollbook.release.v1")!;
  const open = (text: string) => refusalOf(() => openRecord(type, bytesOf(text), "file.json"));

  test("bytes that are not their own canonical form are refused", () => {
    const text = canonicalize(wire);
    const others = [
      JSON.stringify(wire),
      ` ${text}`,
      `${text}\n`,
      text.replace('"atMs":7', '"atMs":7.0'),
      text.replace("looked", "\\u006cooked"),
      text.replace('"atMs":7,', '"atMs":7,"atMs":7,'),
    ];
    for (const other of others) {
      expect(other).not.toBe(text);
      expect(open(other)).toMatchObject({ code: "not-canonical", fields: { where: "file.json" } });
    }
  });

  test("a duplicate key, broken JSON and bad UTF-8 are refused with their place", () => {
    expect(open('{"atMs":7,').fields).toMatchObject({ where: "file.json", line: 1, column: 11 });
    expect(refusalOf(() => openRecord(type, Uint8Array.of(0x22, 0xff, 0x22), "f")).code).toBe("bad-json");
  });

  test("another kind, an older and a newer version are refused, the newer with the right remedy", () => {
    const version = (schema: unknown) => open(canonicalize({ ...wire, schema }));
    expect(version("rollbook.release.v2").message).toContain("Upgrade rollbook");
    expect(version("rollbook.release.v0").message).toContain('Expected "rollbook.release.v1"');
    expect(version("rollbook.verdict.v1").code).toBe("unknown-schema");
    expect(version(7).code).toBe("unknown-schema");
    expect(open("[]").code).toBe("bad-record");
    expect(open("null").code).toBe("bad-record");
  });

  test("an unknown field is refused by name, __proto__ included", () => {
    const extra = canonicalize({ ...wire, surprise: 1 });
    expect(open(extra).message).toContain("surprise");
    const proto = canonicalize(wire).replace('{"atMs"', '{"__proto__":{"by":"x"},"atMs"');
    expect(open(proto)).toMatchObject({ code: "bad-record", fields: { where: "file.json" } });
  });
});

function shuffleKeys(value: unknown, rng: Rng): unknown {
  if (Array.isArray(value)) return value.map((item) => shuffleKeys(item, rng));
  if (typeof value !== "object" || value === null) return value;
  const entries = rng.shuffle(Object.entries(value));
  return Object.fromEntries(entries.map(([key, item]) => [key, shuffleKeys(item, rng)]));
}

/** Mutants of a record: every leaf replaced by several others, every member dropped, every list emptied and doubled. */
function* mutants(wire: unknown): Generator<{ at: string; wire: unknown }> {
  yield* visit(wire, (value) => value, "$");
  function* visit(
    value: unknown,
    rebuild: (value: unknown) => unknown,
    at: string,
  ): Generator<{ at: string; wire: unknown }> {
    for (const other of othersThan(value)) yield { at, wire: rebuild(other) };
    if (typeof value !== "object" || value === null) return;
    for (const [key, item] of Object.entries(value)) {
      const here = `${at}.${key}`;
      if (Array.isArray(value)) {
        yield* visit(item, (next) => rebuild(value.with(Number(key), next)), here);
        continue;
      }
      const { [key]: _, ...rest } = value as Record<string, unknown>;
      yield { at: here, wire: rebuild(rest) };
      yield* visit(item, (next) => rebuild({ ...value, [key]: next }), here);
    }
  }
}

function othersThan(value: unknown): unknown[] {
  if (typeof value === "string") {
    const other = value.startsWith("sha256:") ? `sha256:${"0".repeat(64)}` : `${value}x`;
    return [other, "", "../x", 7, null];
  }
  if (typeof value === "number") return [value + 1, -1, 0.375, String(value), null];
  if (typeof value === "boolean") return [!value, "true"];
  if (Array.isArray(value)) return [[], [...value, ...value], { ...value }];
  return value === null ? [1, "0", {}] : [[], null, "x"];
}

function corrupt(bytes: Buffer, rng: Rng, round: number): Buffer {
  const at = rng.below(bytes.length);
  if (round % 4 === 0) return bytes.subarray(0, at);
  if (round % 4 === 1) return Buffer.concat([bytes.subarray(0, at), bytes.subarray(at + 1)]);
  if (round % 4 === 2) return Buffer.concat([bytes.subarray(0, at), bytes.subarray(rng.below(at + 1))]);
  bytes[at] = rng.below(2) === 0 ? rng.below(256) : 48 + rng.below(10);
  return bytes;
}
