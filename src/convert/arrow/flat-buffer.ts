/** FlatBuffers for Arrow's metadata: tables, strings, vectors and structs, written from front to back, so that every
 *  offset points forward. In: a tree of values. Out: bytes. Pure. */

export type FlatValue =
  | { readonly kind: "scalar"; readonly bytes: 1 | 2 | 4 | 8; readonly value: number | bigint }
  | { readonly kind: "string"; readonly text: string }
  /** Fields by slot. Undefined takes the default of the schema. */
  | { readonly kind: "table"; readonly fields: readonly (FlatValue | undefined)[] }
  /** A vector of strings or tables. */
  | { readonly kind: "vector"; readonly items: readonly FlatValue[] }
  /** Structs of 64-bit numbers. */
  | { readonly kind: "structs"; readonly count: number; readonly words: readonly bigint[] };

export const u8 = (value: number): FlatValue => ({ kind: "scalar", bytes: 1, value });
export const i16 = (value: number): FlatValue => ({ kind: "scalar", bytes: 2, value });
export const i32 = (value: number): FlatValue => ({ kind: "scalar", bytes: 4, value });
export const i64 = (value: number | bigint): FlatValue => ({ kind: "scalar", bytes: 8, value });
export const string = (text: string): FlatValue => ({ kind: "string", text });
export const table = (...fields: (FlatValue | undefined)[]): FlatValue => ({ kind: "table", fields });
export const vector = (items: readonly FlatValue[]): FlatValue => ({ kind: "vector", items });
export const structs = (rows: readonly (readonly bigint[])[]): FlatValue => ({
  ...{ kind: "structs", count: rows.length, words: rows.flat() },
});

/** The buffer with this table as its root. Its length is a multiple of 8. */
export function flatBuffer(root: FlatValue): Uint8Array {
  const out = new FlatWriter();
  out.follow(out.space(4), root);
  out.align(8);
  return out.bytes();
}

class FlatWriter {
  #buffer = Buffer.alloc(1024);
  #end = 0;

  bytes(): Uint8Array {
    return this.#buffer.subarray(0, this.#end);
  }

  align(to: number, before = 0): void {
    this.space((to - ((this.#end + before) % to)) % to);
  }

  /** Reserves this many zero bytes. Returns their position. */
  space(bytes: number): number {
    const at = this.#end;
    this.#end += bytes;
    while (this.#end > this.#buffer.length)
      this.#buffer = Buffer.concat([this.#buffer, Buffer.alloc(this.#buffer.length)]);
    return at;
  }

  /** Writes a value at the end, and the offset of the value at `from`. */
  follow(from: number, value: FlatValue): void {
    const at = this.#write(value);
    this.#buffer.writeUInt32LE(at - from, from);
  }

  #write(value: FlatValue): number {
    switch (value.kind) {
      case "table":
        return this.#table(value.fields);
      case "string":
        return this.#string(value.text);
      case "vector":
        return this.#vector(value.items);
      case "structs":
        return this.#structs(value);
      case "scalar":
        return this.#scalar(this.space(value.bytes), value);
      default:
        return value satisfies never;
    }
  }

  #table(fields: readonly (FlatValue | undefined)[]): number {
    const { offsets, size } = layout(fields);
    this.align(2);
    const vtable = this.space(4 + 2 * fields.length);
    this.#buffer.writeUInt16LE(4 + 2 * fields.length, vtable);
    this.#buffer.writeUInt16LE(size, vtable + 2);
    for (const [i, offset] of offsets.entries()) this.#buffer.writeUInt16LE(offset, vtable + 4 + 2 * i);
    this.align(8);
    const at = this.space(size);
    this.#buffer.writeInt32LE(at - vtable, at);
    for (const [i, field] of fields.entries()) {
      if (field?.kind === "scalar") this.#scalar(at + offsets[i]!, field);
      else if (field !== undefined) this.follow(at + offsets[i]!, field);
    }
    return at;
  }

  #scalar(at: number, { bytes, value }: Extract<FlatValue, { kind: "scalar" }>): number {
    if (bytes === 8) this.#buffer.writeBigInt64LE(BigInt(value), at);
    else this.#buffer.writeIntLE(Number(value), at, bytes);
    return at;
  }

  #string(text: string): number {
    const bytes = Buffer.from(text);
    this.align(4);
    const at = this.space(4 + bytes.length + 1);
    this.#buffer.writeUInt32LE(bytes.length, at);
    bytes.copy(this.#buffer, at + 4);
    return at;
  }

  #vector(items: readonly FlatValue[]): number {
    this.align(4);
    const at = this.space(4 + 4 * items.length);
    this.#buffer.writeUInt32LE(items.length, at);
    for (const [i, item] of items.entries()) this.follow(at + 4 + 4 * i, item);
    return at;
  }

  /** The structs begin at a multiple of 8, after the count. */
  #structs({ count, words }: Extract<FlatValue, { kind: "structs" }>): number {
    this.align(8, 4);
    const at = this.space(4 + 8 * words.length);
    this.#buffer.writeUInt32LE(count, at);
    for (const [i, word] of words.entries()) this.#buffer.writeBigInt64LE(word, at + 4 + 8 * i);
    return at;
  }
}

/** Offsets of a table's fields, after the offset to its vtable. 0 for an absent field. */
function layout(fields: readonly (FlatValue | undefined)[]): { offsets: number[]; size: number } {
  let size = 4;
  const offsets = fields.map((field) => {
    if (field === undefined) return 0;
    const bytes = field.kind === "scalar" ? field.bytes : 4;
    const at = Math.ceil(size / bytes) * bytes;
    size = at + bytes;
    return at;
  });
  return { offsets, size };
}
