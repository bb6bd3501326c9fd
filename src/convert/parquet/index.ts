export {
  F32,
  F64,
  FLAG,
  field,
  I64,
  list,
  orNull,
  type ParquetColumn,
  struct,
  TEXT,
  TIME,
  U8,
  U32,
} from "./parquet-columns.ts";
export { writeParquetRows } from "./parquet-rows.ts";
