/** Rows of a segment as values: sources and targets with their texts, and the inputs of the segment's hashes.
 *  In: a segment. Out: rows, block by block. Used by compaction, which writes them again, and by the validator. */
import { columnsOf, HASHED_LINEAGE, type HashedSets, type SegmentReader } from "../tables/index.ts";
import type { SourceRow, TargetRow } from "./segment-writer.ts";

const ROWS = 4096;

interface StoredSource {
  row: number;
  /** Key as stored. */
  key: Uint8Array;
  source: SourceRow;
}

export async function* readSources(reader: SegmentReader): AsyncGenerator<StoredSource> {
  const texts = await reader.texts();
  for await (const { from, to, columns: block } of reader.blocks("sources", columnsOf("sources"), ROWS)) {
    const start = Number(block.features_start[0]!);
    const end = Number(block.features_start[to - from - 1]!) + block.features_length[to - from - 1]!;
    const { value } = await reader.read("source_features", ["value"], { from: start, to: end });
    for (let i = 0; i < to - from; i++) {
      const at = Number(block.features_start[i]!) - start;
      const source = {
        task: texts[block.task[i]!]!,
        taskDigest: texts[block.task_digest[i]!],
        environment: texts[block.environment[i]!]!,
        split: texts[block.split[i]!],
        dataSource: texts[block.data_source[i]!]!,
        features: value.slice(at, at + block.features_length[i]!),
      };
      yield { row: from + i, key: block.key.subarray(i * 32, (i + 1) * 32), source };
    }
  }
}

/** Targets are few: one per config and kind of ending. */
export async function readTargets(
  reader: SegmentReader,
): Promise<{ key: Uint8Array; valid: boolean; target: TargetRow }[]> {
  const texts = await reader.texts();
  const { key, config, reward, valid, invalid_reason } = await reader.read("targets", columnsOf("targets"));
  return Array.from(reward, (text, i) => ({
    key: key.subarray(i * 32, (i + 1) * 32),
    valid: valid[i] === 1,
    target: {
      config: texts[config[i]!],
      reward: texts[text]!,
      invalidReason: texts[invalid_reason[i]!],
    },
  }));
}

/** Adds the chains and the lineage of a segment to `hashes`. */
export async function addStoredChains(hashes: HashedSets, reader: SegmentReader): Promise<void> {
  const texts = await reader.texts();
  for await (const { columns } of reader.blocks("chains", ["content", "stream"], ROWS)) {
    const { content, stream } = columns;
    for (let i = 0; i < stream.length; i++)
      hashes.addChain(content.subarray(i * 32, (i + 1) * 32), stream[i]!);
  }
  for await (const { columns } of reader.blocks("lineage", HASHED_LINEAGE, ROWS))
    for (const name of HASHED_LINEAGE)
      for (const id of new Set(columns[name])) hashes.addLineage(name, texts[id]);
}
