/** Columns of the tables for SQL and data frames. Every column may be null: a value that was not recorded is unknown.
 *  Nested values are JSON in text columns, which DuckDB, pyarrow and polars all read as text; polars reads Parquet's own
 *  JSON type as bytes. */
import { F64, I64, orNull, type ParquetColumn, TEXT, TIME } from "../parquet/index.ts";

type ValueOf<Item, Value> = (item: Item) => Value | null | undefined;

export function text<Item>(name: string, value: ValueOf<Item, string>): ParquetColumn<Item> {
  return { name, type: orNull(TEXT), value: (item) => value(item) ?? null };
}

export function real<Item>(name: string, value: ValueOf<Item, number>): ParquetColumn<Item> {
  return { name, type: orNull(F64), value: (item) => value(item) ?? null };
}

export function whole<Item>(name: string, value: ValueOf<Item, number>): ParquetColumn<Item> {
  return { name, type: orNull(I64), value: (item) => toBigInt(value(item)) };
}

/** From milliseconds since the Unix epoch. */
export function time<Item>(name: string, value: ValueOf<Item, number>): ParquetColumn<Item> {
  return { name, type: orNull(TIME), value: (item) => toBigInt(value(item)) };
}

export function nested<Item>(name: string, value: ValueOf<Item, object>): ParquetColumn<Item> {
  return {
    name,
    type: orNull(TEXT),
    value: (item) => {
      const found = value(item) ?? null;
      return found === null ? null : JSON.stringify(found);
    },
  };
}

function toBigInt(value: number | null | undefined): bigint | null {
  return value === null || value === undefined ? null : BigInt(value);
}
