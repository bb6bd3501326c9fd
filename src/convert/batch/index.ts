/** Exports a trainer batch as one file of a format that trainers read.
 *  In: a batch and an unused path. Out: the complete file, or no file. Does not change the book. */
import { statSync } from "node:fs";
import type { ReadableBatch } from "../../keep/batch/index.ts";
import { type NewFile, writeNewFile } from "../new-file.ts";

export const EXPORT_FORMATS = ["jsonl", "npz", "safetensors", "parquet"] as const;
export type ExportFormat = (typeof EXPORT_FORMATS)[number];

/** Returns the size of the file in bytes. */
export async function exportBatch(
  batch: ReadableBatch,
  options: { format: ExportFormat; out: string },
): Promise<{ bytes: number }> {
  const write = await writerOf(options.format);
  await writeNewFile(options.out, (file) => write(batch, file));
  return { bytes: statSync(options.out).size };
}

type WriteBatch = (batch: ReadableBatch, file: NewFile) => Promise<void>;

/** Loaded on demand: the Parquet writer is a separate package. */
async function writerOf(format: ExportFormat): Promise<WriteBatch> {
  switch (format) {
    case "jsonl":
      return (await import("./write-jsonl.ts")).writeJsonl;
    case "npz":
      return (await import("./write-npz.ts")).writeNpz;
    case "safetensors":
      return (await import("./write-safetensors.ts")).writeSafetensors;
    case "parquet":
      return (await import("./write-parquet.ts")).writeParquet;
    default:
      return format satisfies never;
  }
}
