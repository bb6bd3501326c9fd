import { gzipSync } from "node:zlib";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type BytesCodec, decodeBytes, encodeBytes } from "./codecs.ts";
import { decodeStrings, encodeStrings } from "./vlen-utf8.ts";
import { loadZstd, wasmZstd } from "./zstd.ts";

const GZIP: BytesCodec = { name: "gzip", level: 6 };
const ZSTD: BytesCodec = { name: "zstd", level: 1, checksum: false };
const CRC: BytesCodec = { name: "crc32c" };

const exactly = (size: number) => ({ where: "c/0", size: { exactly: size } });

describe("the codecs of a chunk", () => {
  it("give back the bytes, in any order and number", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.uint8Array({ maxLength: 3000 }),
        fc.array(fc.constantFrom(GZIP, ZSTD, CRC), { maxLength: 4 }),
        async (bytes, codecs) => {
          const stored = await encodeBytes(codecs, bytes);
          expect(Buffer.compare(await decodeBytes(codecs, stored, exactly(bytes.length)), bytes)).toBe(0);
        },
      ),
      { numRuns: 60 },
    );
  });

  it("find every flipped bit of a checked chunk", async () => {
    for (const codecs of [[CRC], [GZIP, CRC], [ZSTD, CRC]]) {
      const raw = new Uint8Array(64).map((_, i) => i * i);
      const stored = Uint8Array.from(await encodeBytes(codecs, raw));
      for (let bit = 0; bit < 8 * stored.length; bit++) {
        stored[bit >> 3]! ^= 1 << (bit & 7);
        await expect(decodeBytes(codecs, stored, exactly(64))).rejects.toThrow("c/0");
        stored[bit >> 3]! ^= 1 << (bit & 7);
      }
    }
  });

  it("refuse a chunk that is too long, too short, or a bomb", async () => {
    await expect(decodeBytes([], new Uint8Array(9), exactly(8))).rejects.toThrow("decodes to 9 bytes");
    await expect(decodeBytes([CRC], new Uint8Array(3), exactly(8))).rejects.toThrow("too short");
    const bomb = new Uint8Array(1 << 24);
    await expect(decodeBytes([GZIP], gzipSync(bomb), exactly(8))).rejects.toThrow("not valid gzip");
    await expect(decodeBytes([ZSTD], await encodeBytes([ZSTD], bomb), exactly(8))).rejects.toThrow(
      "not valid zstd",
    );
  });

  it("write zstd that the runtime and WebAssembly both read", async () => {
    const bytes = new Uint8Array(100_000).map((_, i) => i >> 5);
    const [own, wasm] = [await loadZstd(), await wasmZstd()];
    for (const [writer, reader] of [
      [own, wasm],
      [wasm, own],
    ] as const) {
      const frame = await writer.encode(bytes, { level: 3, checksum: false });
      expect(frame.length).toBeLessThan(10_000);
      expect(Buffer.compare(await reader.decode(frame, bytes.length), bytes)).toBe(0);
    }
  });
});

describe("vlen-utf8", () => {
  it("gives back any strings", () => {
    fc.assert(
      fc.property(fc.array(fc.string({ unit: "binary" })), (strings) => {
        expect(decodeStrings(encodeStrings(strings), strings.length, "c/0")).toEqual(strings);
      }),
      { numRuns: 40 },
    );
  });

  it("refuses a lone surrogate, which has no UTF-8 form", () => {
    expect(() => encodeStrings(["a\ud800"])).toThrow("lone surrogate");
  });

  it("refuses wrong counts, invalid UTF-8, early ends and bytes left over", () => {
    const bytes = Uint8Array.from(encodeStrings(["ab", "c"]));
    expect(() => decodeStrings(bytes, 3, "c/0")).toThrow("does not hold 3 strings");
    for (let length = 0; length < bytes.length; length++)
      expect(() => decodeStrings(bytes.subarray(0, length), 2, "c/0")).toThrow("c/0");
    expect(() => decodeStrings(Buffer.concat([bytes, bytes]), 2, "c/0")).toThrow("left over");
    expect(() => decodeStrings(bytes.with(8, 0xff), 2, "c/0")).toThrow("invalid UTF-8 in string 0");
  });
});
