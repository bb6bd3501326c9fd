import { describe, expect, test } from "vitest";
import { refusalOf } from "../../../test/support/refusal-of.ts";
import { makeRevision } from "../../../test/support/shelf.ts";
import { rngFrom } from "../../base/rng.ts";
import { openRecord, seal } from "../codec/record.ts";
import { PolicyRevisionLineage, sealLineage } from "./lineage.ts";

const target = makeRevision("policy-r9", { number: 9n });

describe("lineage", () => {
  test("sources leave unique and sorted by UTF-8 bytes, whatever their order and number", () => {
    // U+FFEE sorts before U+1F600 by UTF-8 bytes and after it by UTF-16 units.
    const sources = ["b", "\u{1f600}", "\uffee", "a", "b"].map((id) => makeRevision(id));
    const digests = new Set<string>();
    for (let seed = 0; seed < 10; seed++) {
      const sealed = sealLineage(target, rngFrom(seed).shuffle([...sources]));
      expect(sealed.record.sources.map((source) => source.id)).toEqual(["a", "b", "\uffee", "\u{1f600}"]);
      digests.add(sealed.digest);
    }
    expect(digests.size).toBe(1);
  });

  test("a one-shot iterable of sources is enough", () => {
    const sealed = sealLineage(
      target,
      (function* () {
        yield makeRevision("policy-r1", { number: 1n });
      })(),
    );
    expect(sealed.record.sources).toHaveLength(1);
  });

  test("drift is the distance to the target, and null where it cannot be known", () => {
    const { sources } = sealLineage(target, [
      makeRevision("a", { number: 2n }),
      makeRevision("b"),
      makeRevision("c", { number: 12n }),
    ]).record;
    expect(sources.map((source) => source.drift)).toEqual([7n, null, null]);
  });

  test("two records of one revision are one source, the same whichever came first", () => {
    const twice = [makeRevision("a", { producedAtMs: 1 }), makeRevision("a", { producedAtMs: 2 })];
    expect(sealLineage(target, twice).digest).toBe(sealLineage(target, [...twice].reverse()).digest);
  });

  test("a lineage that is unsorted, repeats a source or misstates a drift is refused on reading", () => {
    const { record } = sealLineage(target, [makeRevision("a", { number: 2n }), makeRevision("b")]);
    const [a, b] = record.sources;
    for (const sources of [
      [b!, a!],
      [a!, a!],
      [{ ...a!, drift: 1n }, b!],
      [a!, { ...b!, drift: 1n }],
    ]) {
      const refusal = refusalOf(() => seal(PolicyRevisionLineage, { ...record, sources }));
      expect(refusal.code).toBe("bad-record");
    }
    expect(openRecord(PolicyRevisionLineage, seal(PolicyRevisionLineage, record).bytes)).toEqual(record);
  });
});
