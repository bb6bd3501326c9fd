/** Arrays of every type and layout for tests of the Zarr store and its oracles. In: a seed or fast-check. Out: values,
 *  and the options to write them with. */
import fc from "fast-check";
import { type Rng, rngFrom } from "../../src/base/rng.ts";
import type { ArrayOptions } from "../../src/keep/replay/zarr/array-writer.ts";
import { createArray } from "../../src/keep/replay/zarr/array-writer.ts";
import {
  bytesOver,
  DATA_TYPES,
  type DataType,
  emptyValues,
  type Values,
} from "../../src/keep/replay/zarr/codecs/data-types.ts";
import type { Store, WrittenArray } from "../../src/keep/replay/zarr/index.ts";

export interface Sample {
  options: ArrayOptions<DataType>;
  rows: number;
  values: Values;
}

const TEXTS = ["", "a", "né", "日本語", "🙂", "x".repeat(300), "\u0000", "line\nbreak", "\ufeffmark"];

export function randomValues(dtype: DataType, items: number, rng: Rng): Values {
  if (dtype === "string") return Array.from({ length: items }, () => TEXTS[rng.below(TEXTS.length)]!);
  const values = emptyValues(dtype, items);
  if (dtype === "bool") return (values as Uint8Array).map(() => rng.below(2));
  // Any bits: NaN payloads, infinities and denormals must pass through unchanged.
  const bytes = bytesOver(values);
  for (let i = 0; i < bytes.length; i++) bytes[i] = rng.below(256);
  return values;
}

export const anySample: fc.Arbitrary<Sample> = fc
  .record({
    dtype: fc.constantFrom(...DATA_TYPES),
    row: fc.constantFrom<number[]>([], [1], [3], [2, 2]),
    rows: fc.integer({ min: 0, max: 40 }),
    chunkRows: fc.integer({ min: 1, max: 12 }),
    shardChunks: fc.integer({ min: 0, max: 3 }),
    compressor: fc.constantFrom(undefined, "gzip" as const, "zstd" as const),
    crc32c: fc.boolean(),
    seed: fc.nat(),
  })
  .map(({ rows, seed, compressor, ...layout }) => ({
    rows,
    options: {
      ...layout,
      ...(compressor === undefined ? {} : { compressor: { name: compressor, level: 1 } }),
    },
    values: randomValues(layout.dtype, rows * layout.row.reduce((n, size) => n * size, 1), rngFrom(seed)),
  }));

/** Checksum, chunks per shard, shape of a row. */
const LAYOUTS: readonly [boolean, number, number[]][] = [
  [false, 0, []],
  [true, 0, [3]],
  [true, 2, []],
  [false, 3, [2]],
];

/** One sample of every type, compressor and layout, by name. */
export function sampleMatrix(): Map<string, Sample> {
  const rng = rngFrom(7);
  const samples = new Map<string, Sample>();
  for (const dtype of DATA_TYPES) {
    for (const compressor of ["none", "gzip", "zstd"] as const) {
      for (const [crc32c, shardChunks, row] of LAYOUTS) {
        const rows = 23;
        const width = row.reduce((n, size) => n * size, 1);
        samples.set(`${dtype}-${compressor}-${crc32c ? "crc" : "bare"}-${shardChunks}-${width}`, {
          rows,
          options: {
            ...{ dtype, row, chunkRows: 5, shardChunks, crc32c },
            ...(compressor === "none" ? {} : { compressor: { name: compressor, level: 1 } }),
          },
          values: randomValues(dtype, rows * width, rng),
        });
      }
    }
  }
  return samples;
}

/** Writes the sample in appends of the given numbers of rows, and the remaining rows in one append. */
export async function writeSample(
  store: Store,
  path: string,
  { sample: { options, rows, values }, pieces = [] }: { sample: Sample; pieces?: readonly number[] },
): Promise<WrittenArray> {
  const writer = createArray(store, path, options);
  const width = (options.row ?? []).reduce((n, size) => n * size, 1);
  let at = 0;
  for (const piece of [...pieces, rows]) {
    const end = Math.min(rows, at + piece);
    await writer.append(values.slice(at * width, end * width) as never);
    at = end;
  }
  return writer.close();
}

/** The exact bits of values, so that two NaN are equal only if their payloads are. */
export function bits(values: Values): unknown {
  return Array.isArray(values) ? values : Buffer.from(bytesOver(values)).toString("hex");
}
