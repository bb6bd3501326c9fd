/** Rows as an Arrow IPC file (Feather version 2), uncompressed: a schema, record batches, and a footer with their
 *  positions. In: groups of rows, flat columns that may hold null, key-value metadata. Out: bytes to a new file. Memory
 *  is bounded by one group. Follows https://arrow.apache.org/docs/format/Columnar.html, metadata version 5. */
import type { NewFile } from "../new-file.ts";
import {
  type FlatValue,
  flatBuffer,
  i16,
  i32,
  i64,
  string,
  structs,
  table,
  u8,
  vector,
} from "./flat-buffer.ts";

/** `time`: milliseconds since the Unix epoch, in UTC. */
export type ArrowType = "text" | "i64" | "f64" | "time";

interface ArrowColumn<Row> {
  readonly name: string;
  readonly type: ArrowType;
  /** A string, a bigint or a number, according to the column's type, or null. */
  value(row: Row): unknown;
}

interface ArrowRows<Row> {
  readonly groups: AsyncIterable<readonly Row[]>;
  readonly columns: readonly ArrowColumn<Row>[];
  readonly metadata: Readonly<Record<string, string>>;
}

const MAGIC = Buffer.from("ARROW1");
const VERSION_5 = 4;
const [SCHEMA, RECORD_BATCH] = [1, 3];
const END = Buffer.from([0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0]);

/** Returns the number of rows. */
export async function writeArrowRows<Row>(
  { groups, columns, metadata }: ArrowRows<Row>,
  file: NewFile,
): Promise<number> {
  const schema = schemaOf(columns, metadata);
  const blocks: bigint[][] = [];
  let at = 0;
  const append = (bytes: Uint8Array) => {
    file.append(bytes);
    at += bytes.length;
  };
  append(padded(MAGIC));
  append(message(SCHEMA, schema, 0));
  let count = 0;
  for await (const group of groups) {
    const { batch, body } = batchOf(columns, group);
    const bodyBytes = body.reduce((sum, { length }) => sum + length, 0);
    const head = message(RECORD_BATCH, batch, bodyBytes);
    blocks.push([BigInt(at), BigInt(head.length), BigInt(bodyBytes)]);
    append(head);
    for (const buffer of body) append(buffer);
    count += group.length;
  }
  append(END);
  const footer = flatBuffer(table(i16(VERSION_5), schema, vector([]), structs(blocks)));
  append(footer);
  const length = Buffer.alloc(4);
  length.writeInt32LE(footer.length);
  append(length);
  append(MAGIC);
  return count;
}

/** A message without its body: a marker, the length of the metadata, the metadata. The body follows. */
function message(type: number, header: FlatValue, bodyBytes: number): Uint8Array {
  const metadata = flatBuffer(table(i16(VERSION_5), u8(type), header, i64(bodyBytes)));
  const prefix = Buffer.alloc(8, 0xff);
  prefix.writeInt32LE(metadata.length, 4);
  return Buffer.concat([prefix, metadata]);
}

function schemaOf<Row>(
  columns: readonly ArrowColumn<Row>[],
  metadata: Readonly<Record<string, string>>,
): FlatValue {
  const fields = columns.map(({ name, type }) => {
    const { id, detail } = TYPES[type];
    return table(string(name), u8(1), u8(id), detail, undefined, vector([]));
  });
  const pairs = Object.entries(metadata).map(([key, value]) => table(string(key), string(value)));
  return table(i16(0), vector(fields), vector(pairs));
}

/** The number of a type in Arrow's union of types, and its additional fields. */
const TYPES: Readonly<Record<ArrowType, { readonly id: number; readonly detail: FlatValue }>> = {
  i64: { id: 2, detail: table(i32(64), u8(1)) },
  f64: { id: 3, detail: table(i16(2)) },
  text: { id: 5, detail: table() },
  time: { id: 10, detail: table(i16(1), string("UTC")) },
};

function batchOf<Row>(columns: readonly ArrowColumn<Row>[], rows: readonly Row[]) {
  const body: Uint8Array[] = [];
  const nodes: bigint[][] = [];
  const buffers: bigint[][] = [];
  let at = 0;
  for (const { type, value } of columns) {
    const values = rows.map(value);
    const nulls = values.filter((each) => each === null).length;
    nodes.push([BigInt(rows.length), BigInt(nulls)]);
    for (const buffer of [validity(values, nulls), ...VALUES[type](values)]) {
      buffers.push([BigInt(at), BigInt(buffer.length)]);
      const whole = padded(buffer);
      body.push(whole);
      at += whole.length;
    }
  }
  const batch = table(i64(rows.length), structs(nodes), structs(buffers));
  return { batch, body };
}

/** One bit per value, the lowest bit first. Empty if no value is null. */
function validity(values: readonly unknown[], nulls: number): Uint8Array {
  if (nulls === 0) return new Uint8Array();
  const bits = new Uint8Array(Math.ceil(values.length / 8));
  for (const [i, value] of values.entries()) if (value !== null) bits[i >> 3]! |= 1 << (i & 7);
  return bits;
}

const VALUES: Readonly<Record<ArrowType, (values: readonly unknown[]) => Uint8Array[]>> = {
  text: texts,
  i64: wholes,
  time: wholes,
  f64: (values) => {
    const bytes = Buffer.alloc(8 * values.length);
    for (const [i, value] of values.entries()) bytes.writeDoubleLE((value as number | null) ?? 0, 8 * i);
    return [bytes];
  },
};

function wholes(values: readonly unknown[]): Uint8Array[] {
  const bytes = Buffer.alloc(8 * values.length);
  for (const [i, value] of values.entries()) bytes.writeBigInt64LE((value as bigint | null) ?? 0n, 8 * i);
  return [bytes];
}

/** Offsets of the texts, and the texts. */
function texts(values: readonly unknown[]): Uint8Array[] {
  const all = values.map((value) => Buffer.from((value as string | null) ?? ""));
  const ends = Buffer.alloc(4 * (all.length + 1));
  let end = 0;
  for (const [i, { length }] of all.entries()) {
    end += length;
    ends.writeInt32LE(end, 4 * (i + 1));
  }
  return [ends, Buffer.concat(all)];
}

function padded(bytes: Uint8Array): Uint8Array {
  const missing = (8 - (bytes.length % 8)) % 8;
  return missing === 0 ? bytes : Buffer.concat([bytes, new Uint8Array(missing)]);
}
