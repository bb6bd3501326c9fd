/** The columns of a Parquet file: types of values, and lists and structs of these types. Pure. */
import type { SchemaElement } from "hyparquet-writer";

type ParquetLeaf = Pick<SchemaElement, "type" | "converted_type" | "logical_type" | "repetition_type">;

export const TEXT: ParquetLeaf = { type: "BYTE_ARRAY", converted_type: "UTF8", repetition_type: "REQUIRED" };
export const U8: ParquetLeaf = { type: "INT32", converted_type: "UINT_8", repetition_type: "REQUIRED" };
export const U32: ParquetLeaf = { type: "INT32", converted_type: "UINT_32", repetition_type: "REQUIRED" };
export const I64: ParquetLeaf = { type: "INT64", repetition_type: "REQUIRED" };
export const F32: ParquetLeaf = { type: "FLOAT", repetition_type: "REQUIRED" };
export const F64: ParquetLeaf = { type: "DOUBLE", repetition_type: "REQUIRED" };
/** Milliseconds since the Unix epoch, in UTC. Without the logical type, polars reads a time without a zone. */
export const TIME: ParquetLeaf = {
  type: "INT64",
  converted_type: "TIMESTAMP_MILLIS",
  logical_type: { type: "TIMESTAMP", isAdjustedToUTC: true, unit: "MILLIS" },
  repetition_type: "REQUIRED",
};
export const FLAG: ParquetLeaf = { type: "BOOLEAN", repetition_type: "REQUIRED" };
export const orNull = (leaf: ParquetLeaf): ParquetLeaf => ({ ...leaf, repetition_type: "OPTIONAL" });

/** A struct, with its fields by name. */
interface ParquetStruct {
  readonly fields: Readonly<Record<string, ParquetType>>;
  /** Present if a value may be null. */
  readonly nullable?: true;
}
interface ParquetList {
  readonly element: ParquetType;
  readonly nullable?: true;
}
type ParquetType = ParquetLeaf | ParquetStruct | ParquetList;

export const list = (element: ParquetType): ParquetList => ({ element });
export const struct = (fields: ParquetStruct["fields"]): ParquetStruct => ({ fields });

export interface ParquetColumn<Row> {
  readonly name: string;
  readonly type: ParquetType;
  value(row: Row): unknown;
}

/** A column with the value of the field of that name. */
export function field<Row extends object>(name: keyof Row & string, type: ParquetType): ParquetColumn<Row> {
  return { name, type, value: (row) => row[name] };
}

export function elementsOf(name: string, type: ParquetType): SchemaElement[] {
  if ("fields" in type) {
    const fields = Object.entries(type.fields);
    return [
      { name, repetition_type: repetition(type), num_children: fields.length },
      ...fields.flatMap(([each, inner]) => elementsOf(each, inner)),
    ];
  }
  if ("element" in type)
    return [
      { name, repetition_type: repetition(type), converted_type: "LIST", num_children: 1 },
      { name: "list", repetition_type: "REPEATED", num_children: 1 },
      ...elementsOf("element", type.element),
    ];
  return [{ name, ...type }];
}

/** True if a column holds only floating-point numbers. They need no dictionary, which would treat 0 and -0 as equal. */
export function isFloat(type: ParquetType): boolean {
  if ("element" in type) return isFloat(type.element);
  return !("fields" in type) && (type.type === "FLOAT" || type.type === "DOUBLE");
}

function repetition({ nullable }: { nullable?: true }): "OPTIONAL" | "REQUIRED" {
  return nullable === true ? "OPTIONAL" : "REQUIRED";
}
