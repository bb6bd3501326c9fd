import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  bytesOf,
  type Column,
  columnFrom,
  type DType,
  digestColumn,
  dtypeOf,
  emptyColumn,
  firstNonFinite,
  GrowingColumn,
  ITEM_BYTES,
} from "./arrays.ts";
import { isRollbookError } from "./errors.ts";

const DTYPES = Object.keys(ITEM_BYTES) as DType[];

describe("columns", () => {
  it("are little-endian bytes", () => {
    expect([...bytesOf(Uint32Array.of(0x01020304))]).toEqual([4, 3, 2, 1]);
    expect([...bytesOf(Float32Array.of(1, -2))]).toEqual([0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0]);
    expect([...columnFrom("i32", Uint8Array.of(0xfe, 0xff, 0xff, 0xff))]).toEqual([-2]);
  });

  // Goldens: printf 'rollbook.column.f32\0\0\0\200\077\0\0\0\300' | sha256sum, and so on.
  it.each([
    [Float32Array.of(1, -2), "sha256:c3005d90461b63d276580be6be1ed728514f1e8c03df4068caca4b483396b6ba"],
    [Float64Array.of(1.5), "sha256:d7fc3962dd5c7069b588549b402ecb8d26f1007838265f3fb6a3e037ee6d8ce8"],
    [Uint8Array.of(1, 2, 3), "sha256:d43c68c0c66e5ea27d0b6d05ac4a504ea8af271cfdacacc5acb853dc6e4e6713"],
    [Int32Array.of(-1), "sha256:089202843dde182cfe684495dbb9e1474706f235fcf55aa42c0657db950ed1e3"],
    [Uint32Array.of(0xffffffff), "sha256:1b576c78a332c3118df5aa0b0914534a4523c68483fb39bd54c195ab82db2893"],
  ] as [Column, string][])(
    "are hashed under the tag of their type, as sha256sum does: case %#",
    (column, digest) => {
      expect(digestColumn(column)).toBe(digest);
    },
  );

  it("come back from their bytes at any alignment, from a Buffer or a Uint8Array", () => {
    const offset = fc.nat(9);
    fc.assert(
      fc.property(
        fc.constantFrom(...DTYPES),
        fc.uint8Array({ maxLength: 64 }),
        offset,
        fc.boolean(),
        (dtype, raw, at, asBuffer) => {
          const bytes = raw.subarray(0, raw.length - (raw.length % ITEM_BYTES[dtype]));
          const file = new Uint8Array(at + bytes.length + 3);
          file.set(bytes, at);
          const view = file.subarray(at, at + bytes.length);
          const column = columnFrom(
            dtype,
            asBuffer ? Buffer.from(view.buffer, view.byteOffset, view.length) : view,
          );
          expect(dtypeOf(column)).toBe(dtype);
          expect(column.length).toBe(bytes.length / ITEM_BYTES[dtype]);
          expect([...bytesOf(column)]).toEqual([...bytes]);
        },
      ),
    );
  });

  it("share aligned bytes and the part of a buffer they cover, no more", () => {
    const bytes = new Uint8Array(16);
    const column = columnFrom("f32", bytes.subarray(4, 12));
    column[0] = 1;
    expect([...bytes.subarray(4, 8)]).toEqual([0, 0, 0x80, 0x3f]);
    expect(bytesOf(column)).toHaveLength(8);
  });

  it("refuse bytes that are not a whole number of values", () => {
    expect(() => columnFrom("f64", new Uint8Array(12))).toThrowError(
      expect.toSatisfy((error) => isRollbookError(error, "bad-column")),
    );
  });

  it.each(DTYPES)("of %s start at zero", (dtype) => {
    const column = emptyColumn(dtype, 3);
    expect(dtypeOf(column)).toBe(dtype);
    expect([...column]).toEqual([0, 0, 0]);
  });
});

describe("firstNonFinite", () => {
  it("finds what findIndex finds", () => {
    const value = fc.oneof(
      { weight: 9, arbitrary: fc.double({ noNaN: true, noDefaultInfinity: true }) },
      fc.constantFrom(Number.NaN, Infinity, -Infinity),
    );
    fc.assert(
      fc.property(fc.array(value), (values) => {
        const expected = (column: Float32Array | Float64Array): number =>
          column.findIndex((v) => !Number.isFinite(v));
        const wide = Float64Array.from(values);
        const narrow = Float32Array.from(values);
        expect(firstNonFinite(wide)).toBe(expected(wide));
        expect(firstNonFinite(narrow)).toBe(expected(narrow));
      }),
    );
  });

  it("is not misled by the largest doubles", () => {
    expect(firstNonFinite(Float64Array.of(Number.MAX_VALUE, Number.MAX_VALUE, -Number.MAX_VALUE))).toBe(-1);
  });
});

describe("a growing column", () => {
  it("holds what was pushed and appended, in order, and starts over when it is taken", () => {
    const column = new GrowingColumn("f64");
    const expected: number[] = [];
    for (let i = 0; i < 3; i++) {
      column.push(i);
      column.append(Array.from({ length: 2000 }, (_, k) => k / 2));
      expected.push(i, ...Array.from({ length: 2000 }, (_, k) => k / 2));
    }
    expect(column.length).toBe(expected.length);
    const taken = column.take();
    expect(taken).toEqual(Float64Array.from(expected));
    column.push(7);
    expect(column.take()).toEqual(Float64Array.of(7));
    expect(taken[0]).toBe(0);
  });
});
