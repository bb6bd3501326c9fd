/** Scenes 4 and 5: trainer batches with lineage and ledger, and the same bytes from another order of arrival. */
import { rngFrom } from "../../base/index.ts";
import { cutBatch } from "../../book/batches/index.ts";
import { bookOver } from "../../book/open/index.ts";
import { LossLedger, PolicyRevisionLineage, type Sealed, type TrainerBatch } from "../../contract/index.ts";
import { type BlobStore, memoryStore, readRecord } from "../../store/index.ts";
import { figure, plural, short } from "../../view/format.ts";
import type { TourScene } from "./stage.ts";

const BATCHES = [
  { target: "writer-r3", level: "token", feedback: "accepted" },
  { target: "router-r2", level: "step", advantage: "leave-one-out", feedback: "accepted" },
] as const;

export const batchScene: TourScene = {
  title: "batches",
  async play({ book, opened, seed, batches }) {
    const lines: string[] = [];
    for (const each of BATCHES) {
      const batch = await cutBatch(opened, { ...each, seed });
      batches.push(batch);
      lines.push(...(await describe(book, batch)));
    }
    return {
      lines,
      proved: "what did not reach a batch is in its ledger with a reason, and the counts add up",
      data: { batches: batches.map(({ digest }) => digest) },
    };
  },
};

export const orderScene: TourScene = {
  title: "another order",
  async play({ book, seed, batches }) {
    const blobs: { kind: string; bytes: Uint8Array }[] = [];
    for await (const item of book.scan())
      if (item.type === "blob" && !/batch|ledger|manifest|attestation/.test(item.kind))
        blobs.push({ kind: item.kind, bytes: item.bytes.slice() });
    const other = memoryStore();
    for (const { kind, bytes } of rngFrom(seed).split("order").shuffle(blobs)) other.put(kind, bytes);
    const again = await cutBatch(bookOver(other), { ...BATCHES[0], seed });
    const same = again.digest === batches[0]!.digest;
    return {
      lines: [
        `the records arrive shuffled in another store; its batch is ${short(again.digest)}: ${same ? "the same" : "ANOTHER"}`,
      ],
      proved: same
        ? "a batch is a function of what is in it, not of who came first"
        : "NOTHING: the batch depends on order",
      data: { batch: again.digest, same },
    };
  },
};

async function describe(store: BlobStore, { digest, record }: Sealed<TrainerBatch>): Promise<string[]> {
  const lineage = await readRecord(store, PolicyRevisionLineage, record.lineage);
  const ledger = await readRecord(store, LossLedger, record.ledger);
  const { totals, target, selection } = record;
  const reasons = ledger.reasons
    .filter(({ reason }) => reason !== "other-family" && reason !== "other-level")
    .map(({ reason, artifacts }) => `${reason} ${artifacts}`);
  return [
    `${selection.level}s for ${target.id}: batch ${short(digest)}, from ${lineage.sources.map(({ id }) => id).join(" and ")}`,
    `  ${plural(totals.rows, "row")}, ${plural(totals.samples, "sample")}, reward ${figure(totals.rewardSum)}, ${record.groupCount} groups, ${plural(record.proofCount, "proof")}`,
    `  ${ledger.considered.artifacts} artifacts = ${ledger.batched.artifacts} batched + ${ledger.excluded.artifacts} excluded: ${reasons.join(", ")}`,
  ];
}
