import { describe, expect, test } from "vitest";
import { d, exampleWire } from "../../../test/support/examples.ts";
import { refusalOf } from "../../../test/support/refusal-of.ts";
import { decodeWire, type RecordType, seal } from "../codec/record.ts";
import { BatchProofs, BatchShard, TrainerBatch } from "./trainer-batch.ts";

const refused = (type: RecordType, over: object) =>
  refusalOf(() => decodeWire(type, { ...exampleWire(type.kind), ...over }, "record"));

describe("trainer batches", () => {
  test("totals are those of the shards and of the sources", () => {
    const shards = [{ digest: d("shard"), rows: 2, samples: 2 }];
    expect(refused(TrainerBatch, { shards }).fields.field).toBe("rows");
    const [source] = exampleWire(TrainerBatch.kind).bySource as { samples: number }[];
    expect(refused(TrainerBatch, { bySource: [{ ...source, samples: 1 }] }).fields.field).toBe("bySource");
  });

  test("proofs are sorted by digest and unique", () => {
    const proofs = [d("a"), d("b")]
      .sort()
      .map((digest) => ({ kind: "execution" as const, digest, reference: "exec://1" }));
    seal(BatchProofs, { proofs });
    for (const wrong of [[...proofs].reverse(), [proofs[0]!, proofs[0]!]])
      expect(refusalOf(() => seal(BatchProofs, { proofs: wrong })).fields.field).toBe("proofs[1]");
  });
});

describe("shards", () => {
  const [row] = exampleWire(BatchShard.kind).rows as Record<string, unknown>[];

  test.each([
    ["a gap before a row", { start: 1 }, "rows[0].start"],
    ["a segment past the row", { segments: [[0, 4, 0]] }, "rows[0]"],
    [
      "overlapping segments",
      {
        segments: [
          [0, 2, 0],
          [1, 3, 0],
        ],
      },
      "rows[0]",
    ],
    ["no sample", { samples: 0 }, "rows[0]"],
    ["more samples than places", { samples: 4 }, "rows[0]"],
    ["a row longer than the columns", { length: 4 }, "data.columns.advantages"],
  ])("%s is refused", (_, over, field) => {
    expect(refused(BatchShard, { rows: [{ ...row, ...over }] }).fields.field).toBe(field);
  });

  test("ragged columns are as long as each other", () => {
    const column = (dtype: string, length: number) => ({ digest: d(dtype), dtype, length });
    const columns = {
      chosen: column("u32", 3),
      probability: column("f64", 3),
      rewards: column("f64", 3),
      advantages: column("f64", 3),
      candidateCounts: column("u32", 3),
      candidateIds: column("u32", 7),
      candidateProbability: column("f64", 7),
      candidateSelectable: column("u8", 7),
    };
    const data = { level: "step", columns, candidates: ["small", "large"] };
    expect(decodeWire(BatchShard, { ...exampleWire(BatchShard.kind), data }, "shard").rows).toHaveLength(1);
    const uneven = { ...data, columns: { ...columns, candidateSelectable: column("u8", 6) } };
    expect(refused(BatchShard, { data: uneven })).toMatchObject({ code: "length-mismatch" });
  });
});
