/** Columns of the tables for SQL and data frames. Every column may be null: a value that was not recorded is unknown.
 *  Nested values are JSON in text columns, which DuckDB, pyarrow and polars all read as text. polars reads Parquet's
 *  own JSON type as bytes. */
import type { ArrowType } from "../arrow/index.ts";

export interface BookColumn<Item> {
  readonly name: string;
  readonly type: ArrowType;
  value(item: Item): string | number | bigint | null;
}

type ValueOf<Item, Value> = (item: Item) => Value | null | undefined;

export function text<Item>(name: string, value: ValueOf<Item, string>): BookColumn<Item> {
  return { name, type: "text", value: (item) => value(item) ?? null };
}

export function real<Item>(name: string, value: ValueOf<Item, number>): BookColumn<Item> {
  return { name, type: "f64", value: (item) => value(item) ?? null };
}

export function whole<Item>(name: string, value: ValueOf<Item, number>): BookColumn<Item> {
  return { name, type: "i64", value: (item) => toBigInt(value(item)) };
}

/** `value` returns milliseconds since the Unix epoch. */
export function time<Item>(name: string, value: ValueOf<Item, number>): BookColumn<Item> {
  return { name, type: "time", value: (item) => toBigInt(value(item)) };
}

export function nested<Item>(name: string, value: ValueOf<Item, object>): BookColumn<Item> {
  return {
    name,
    type: "text",
    value: (item) => {
      const found = value(item) ?? null;
      return found === null ? null : JSON.stringify(found);
    },
  };
}

function toBigInt(value: number | null | undefined): bigint | null {
  return value === null || value === undefined ? null : BigInt(value);
}
