import { createHash } from "node:crypto";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  type Digest,
  digestBytes,
  digestFromBytes,
  digestJson,
  digestTagged,
  digestToBytes,
  isDigest,
  writeHex,
} from "./digest.ts";
import { isRollbookError } from "./errors.ts";

// Goldens: printf 'rollbook.test\0<bytes>' | sha256sum
const EMPTY = "sha256:9490db6729812994ae1b0bea45d4db5bf9905c9611f38c80df9fd5d81c03bac1";
const HELLO = "sha256:3e025cf50e377bd4d925e105480a5fcfa145048af9850b8862374521aa67b32d";
const OBJECT = "sha256:edae6c3e13a424169828513abbbde215353b07a3d27a1532edf391f26f4e7559"; // {"a":[1,"é"],"b":null}

describe("digests", () => {
  it("are SHA-256 over tag, zero byte and bytes, as sha256sum computes it", () => {
    expect(digestBytes("rollbook.test", new Uint8Array())).toBe(EMPTY);
    expect(digestBytes("rollbook.test", Buffer.from("hello"))).toBe(HELLO);
    expect(digestTagged(Buffer.from("rollbook.test\0hello"))).toBe(HELLO);
  });

  it("of JSON are those of its canonical UTF-8 text, whatever the key order", () => {
    expect(digestJson("rollbook.test", { b: null, a: [1, "é"] })).toBe(OBJECT);
    expect(digestJson("rollbook.test", { a: [1, "é"], b: null })).toBe(OBJECT);
    expect(digestBytes("rollbook.test", Buffer.from('{"a":[1,"é"],"b":null}'))).toBe(OBJECT);
  });

  it.each([0, 1, 65_535, 65_536, 65_537])(
    "of %i bytes, under any tag, are hashed as tag, zero and bytes",
    (length) => {
      const bytes = new Uint8Array(length).fill(length);
      for (const tag of ["", "rollbook.test", "é😀\ud800".repeat(31), "x".repeat(128), "x".repeat(129)]) {
        const whole = createHash("sha256").update(tag).update(Buffer.of(0)).update(bytes).digest("hex");
        expect(digestBytes(tag, bytes)).toBe(`sha256:${whole}`);
      }
    },
  );

  it("differ between tags over the same bytes", () => {
    fc.assert(
      fc.property(fc.uint8Array(), (bytes) => {
        expect(digestBytes("rollbook.a", bytes)).not.toBe(digestBytes("rollbook.b", bytes));
      }),
    );
  });

  it("survive the way to 32 bytes and back", () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 32, maxLength: 32 }), (bytes) => {
        const digest = digestFromBytes(bytes);
        expect(isDigest(digest)).toBe(true);
        expect([...digestToBytes(digest)]).toEqual([...bytes]);
        const target = new Uint8Array(40).fill(9);
        writeHex(digest, { from: 7, target, at: 5 });
        expect([...target]).toEqual([...Array(5).fill(9), ...bytes, 9, 9, 9]);
      }),
    );
    // A view into a larger buffer, as in an index file.
    const file = new Uint8Array(100).fill(7).subarray(3, 35);
    expect(digestFromBytes(file)).toBe(`sha256:${"07".repeat(32)}`);
  });

  it("are not made of more or fewer bytes than 32", () => {
    for (const length of [0, 31, 33]) {
      expect(() => digestFromBytes(new Uint8Array(length))).toThrowError(
        expect.toSatisfy((error) => isRollbookError(error, "bad-digest")),
      );
    }
  });

  it.each([
    [HELLO, true],
    [HELLO.toUpperCase(), false],
    [HELLO.slice(0, -1), false],
    [`${HELLO}0`, false],
    [`${HELLO}\n`, false],
    [HELLO.replace("sha256:", "sha512:"), false],
    ["", false],
    [undefined, false],
    [12, false],
  ])("%j is a digest: %s", (text, expected) => {
    expect(isDigest(text)).toBe(expected);
    if (isDigest(text)) text satisfies Digest;
  });
});
