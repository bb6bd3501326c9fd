import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { checksumMemory, crc32c } from "./crc32c.ts";
import { LONG, SHORT } from "./crc32c-kernel.ts";

const POLYNOMIAL = 0x82f63b78;

/** Reference: the definition, bit by bit. */
function slowCrc32c(bytes: Uint8Array): number {
  let register = -1;
  for (const byte of bytes) {
    register ^= byte;
    for (let bit = 0; bit < 8; bit++)
      register = register & 1 ? (register >>> 1) ^ POLYNOMIAL : register >>> 1;
  }
  return ~register >>> 0;
}

function noise(length: number): Uint8Array {
  let state = 1;
  return new Uint8Array(length).map(() => {
    state = (Math.imul(state, 1664525) + 1013904223) | 0;
    return state >>> 24;
  });
}

describe("crc32c", () => {
  it.each([
    ["32 zeros", new Uint8Array(32), 0x8a9136aa],
    ["32 ones", new Uint8Array(32).fill(0xff), 0x62a8ab43],
    ["0 to 31", new Uint8Array(32).map((_, i) => i), 0x46dd794e],
    ["31 to 0", new Uint8Array(32).map((_, i) => 31 - i), 0x113fdb5c],
    ["the digits 1 to 9", Buffer.from("123456789"), 0xe3069283],
  ])("gives the value published for %s (RFC 3720, B.4)", (_name, bytes, expected) => {
    expect(crc32c(bytes)).toBe(expected);
  });

  it("agrees with the definition at every length around the limits of the kernel", () => {
    const bytes = noise(140_000);
    const { reach } = LONG;
    const limits = [
      0,
      8,
      SHORT.reach,
      4 * SHORT.reach,
      reach,
      2 * reach,
      3 * reach,
      reach + 65_536,
      bytes.length,
    ];
    for (const limit of limits)
      for (let length = Math.max(0, limit - 17); length <= Math.min(bytes.length, limit + 17); length++)
        expect([length, crc32c(bytes.subarray(0, length))]).toEqual([
          length,
          slowCrc32c(bytes.subarray(0, length)),
        ]);
  });

  it("agrees with the definition on any bytes at any alignment", () => {
    const bytes = noise(300_000);
    fc.assert(
      fc.property(fc.nat(9), fc.nat(290_000), (start, length) => {
        const part = bytes.subarray(start, start + length);
        expect(crc32c(part)).toBe(slowCrc32c(part));
      }),
      { numRuns: 12 },
    );
  });

  it("gives the same in memory of its own, and does not change its input in either", () => {
    const before = noise(100_000);
    const own = checksumMemory(before.length);
    own.set(before);
    for (const [start, end] of [
      [0, 100_000],
      [0, 50_001],
      [1, 99_999],
      [13, 13 + 2 * LONG.reach],
      [5, 500],
      [3, 3],
    ] as const)
      for (const bytes of [before.slice(), own])
        expect([start, end, crc32c(bytes.subarray(start, end))]).toEqual([
          start,
          end,
          slowCrc32c(before.subarray(start, end)),
        ]);
    expect(Buffer.compare(own, before)).toBe(0);
  });

  it("asks for bytes before it looks at them, in order and up to the end", () => {
    const bytes = noise(100_000);
    for (const target of [new Uint8Array(bytes.length), checksumMemory(bytes.length)]) {
      let done = 0;
      const checksum = crc32c(target, (end) => {
        expect(end).toBeGreaterThanOrEqual(done);
        target.set(bytes.subarray(done, end), done);
        done = end;
      });
      expect([done, checksum]).toEqual([bytes.length, slowCrc32c(bytes)]);
    }
  });

  it("rests on sparse multiples of its polynomial", () => {
    // The remainder of x^(8n) is the register for 1 after n zero bytes.
    const remainder = (bytes: number) => {
      let register = 0x80000000 | 0;
      for (let i = 0; i < 8 * bytes; i++)
        register = register & 1 ? (register >>> 1) ^ POLYNOMIAL : register >>> 1;
      return register;
    };
    for (const { exponents, reach, stride } of [LONG, SHORT]) {
      expect(exponents.reduce((sum, exponent) => sum ^ remainder(exponent), 0)).toBe(0);
      expect([exponents[0], exponents.at(-1)]).toEqual([reach, 0]);
      expect(exponents[0]! - exponents[1]!).toBeGreaterThanOrEqual(stride);
    }
  });
});
