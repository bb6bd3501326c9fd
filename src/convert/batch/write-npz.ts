/** A batch as a .npz file: a ZIP archive of .npy arrays that `numpy.load` reads without pickle.
 *  In: a batch. Out: the file, in two passes over the shards. The same batch gives the same bytes. */
import type { ReadableBatch } from "../../keep/batch/index.ts";
import type { NewFile } from "../new-file.ts";
import { ColumnSlots } from "./column-slots.ts";
import { bytesOfBlock, type FlatColumn, flatBlocks, itemBytes, planColumns } from "./flat-columns.ts";
import { encodeFixedText, npyHeader, numpyText, numpyType } from "./npy.ts";
import { provenanceOf } from "./provenance.ts";
import { centralDirectory, localHeader, planZip } from "./zip-records.ts";

/** The array with the provenance, as UTF-8. */
const PROVENANCE_ARRAY = "meta.json";

export async function writeNpz(
  batch: ReadableBatch,
  file: NewFile,
  options: { zip64From?: number } = {},
): Promise<void> {
  const plan = await planColumns(batch);
  const provenance = Buffer.from(provenanceOf(batch));
  const headers = new Map([[PROVENANCE_ARRAY, npyHeader(numpyType("u8"), provenance.length)]]);
  const sizes = new Map([[PROVENANCE_ARRAY, provenance.length]]);
  for (const column of plan.columns) {
    headers.set(column.name, npyHeader(typeOf(column), column.length));
    sizes.set(column.name, bytesOfColumn(column));
  }
  const zip = planZip(
    [...headers].map(([name, { length }]) => ({ name: `${name}.npy`, size: length + sizes.get(name)! })),
    options.zip64From,
  );
  const slots = new ColumnSlots(file, { checksums: true });
  for (const [i, [name, header]] of [...headers].entries()) {
    slots.add(name, zip.entries[i]!.dataAt, header.length + sizes.get(name)!);
    slots.write(name, header);
  }
  slots.write(PROVENANCE_ARRAY, provenance);
  const widths = new Map(plan.columns.map((column) => [column.name, widthOf(column)]));
  for await (const block of flatBlocks(batch, plan)) {
    const { name } = block;
    slots.write(
      name,
      "texts" in block ? encodeFixedText(block.texts, widths.get(name)!, name) : bytesOfBlock(block),
    );
  }
  const crcs = slots.finish();
  const crcOf = (entry: string) => crcs.get(entry.slice(0, -".npy".length))!;
  for (const [i, { name, headerAt }] of zip.entries.entries())
    file.writeAt(localHeader(zip, i, crcOf(name)), headerAt);
  file.writeAt(centralDirectory(zip, crcOf), zip.directoryAt);
}

function typeOf(column: FlatColumn): string {
  return column.kind === "text" ? numpyText(widthOf(column)) : numpyType(column.type);
}

function bytesOfColumn(column: FlatColumn): number {
  return column.length * (column.kind === "text" ? 4 * widthOf(column) : itemBytes(column.type));
}

/** numpy has no text type of width 0. */
function widthOf(column: FlatColumn): number {
  return column.kind === "text" ? Math.max(1, column.widest) : 0;
}
