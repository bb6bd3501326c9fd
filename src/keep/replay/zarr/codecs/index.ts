export { formatCodecs, parseCodecs } from "./codec-metadata.ts";
export { type BytesCodec, CRC_BYTES, damaged, decodeBytes, encodeBytes, verifyCrc } from "./codecs.ts";
export { checksumMemory } from "./crc32c.ts";
export {
  bytesOver,
  type DataType,
  defaultFill,
  emptyValues,
  type FillValue,
  type FixedType,
  fillValues,
  isDataType,
  isValuesOf,
  itemBytes,
  type NumericValues,
  parseFill,
  type Values,
  type ValuesOf,
  valuesOver,
} from "./data-types.ts";
export { indexBytes, parseShardIndex, ShardBuilder, type ShardIndex } from "./sharding.ts";
export { decodeStrings, encodeStrings } from "./vlen-utf8.ts";
