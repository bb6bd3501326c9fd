/** The provenance that every exported file states about its batch. Pure. */
import { encodeWire, TrainerBatch } from "../../contract/index.ts";
import type { ReadableBatch } from "../../keep/batch/index.ts";

const EXPORT_SCHEMA = "rollbook.batch-export.v1";

/** The key of the provenance in formats with key-value metadata (Parquet, safetensors). */
export const PROVENANCE_KEY = "rollbook";

/** One line of JSON, with the names of the batch record. `segment_source` is an index into `sources`. */
export function provenanceOf({ digest, record, sources }: ReadableBatch): string {
  const { manifest, target, selection, seed, options, lineage, ledger, totals, tokens } = encodeWire(
    TrainerBatch,
    record,
  ) as Record<string, unknown>;
  return JSON.stringify({
    schema: EXPORT_SCHEMA,
    batch: digest,
    manifest,
    target,
    selection,
    seed,
    options,
    lineage,
    ledger,
    totals,
    tokens,
    sources: sources.map(({ number, drift, ...rest }) => ({
      ...rest,
      ...(number === undefined ? {} : { number: String(number) }),
      drift: drift === null ? null : String(drift),
    })),
  });
}
