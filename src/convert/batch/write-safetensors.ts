/** A batch as a safetensors file. In: a batch. Out: the file, in two passes over the shards.
 *  The format has no text type. A text column is two tensors: NAME.utf8 with all bytes, and NAME.offsets with the start
 *  of each text and the end of the last one. The metadata holds the provenance. The same batch gives the same bytes. */
import type { ReadableBatch } from "../../keep/batch/index.ts";
import { planSafetensors, type TensorShape } from "../../policy/index.ts";
import type { NewFile } from "../new-file.ts";
import { ColumnSlots } from "./column-slots.ts";
import { bytesOfBlock, type FlatColumn, flatBlocks, planColumns } from "./flat-columns.ts";
import { PROVENANCE_KEY, provenanceOf } from "./provenance.ts";

export async function writeSafetensors(batch: ReadableBatch, file: NewFile): Promise<void> {
  const plan = await planColumns(batch);
  const { header, places } = planSafetensors(plan.columns.flatMap(tensorsOf), {
    [PROVENANCE_KEY]: provenanceOf(batch),
  });
  const slots = new ColumnSlots(file, { checksums: false });
  for (const { name, at, bytes } of places) slots.add(name, at, bytes);
  const ends = new Map<string, bigint>();
  for (const column of plan.columns) {
    if (column.kind !== "text") continue;
    ends.set(column.name, 0n);
    slots.write(`${column.name}.offsets`, new Uint8Array(8));
  }
  for await (const block of flatBlocks(batch, plan)) {
    const { name } = block;
    if ("values" in block) {
      slots.write(name, bytesOfBlock(block));
      continue;
    }
    let end = ends.get(name)!;
    const offsets = BigInt64Array.from(block.texts, (text) => {
      end += BigInt(Buffer.byteLength(text));
      return end;
    });
    ends.set(name, end);
    slots.write(`${name}.utf8`, Buffer.from(block.texts.join("")));
    slots.write(`${name}.offsets`, bytesOfBlock({ name, values: offsets }));
  }
  slots.finish();
  file.writeAt(header, 0);
}

function tensorsOf(column: FlatColumn): TensorShape[] {
  const { name, length } = column;
  if (column.kind === "numbers") return [{ name, type: column.type, shape: [length] }];
  return [
    { name: `${name}.utf8`, type: "u8", shape: [column.utf8Bytes] },
    { name: `${name}.offsets`, type: "i64", shape: [length + 1] },
  ];
}
