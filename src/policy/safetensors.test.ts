import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { python } from "../../scripts/python.mjs";
import * as pythonZarr from "../../scripts/setup/python-zarr.mjs";
import { describeNeeding } from "../../test/support/needs.ts";
import { decodeSafetensors, encodeSafetensors } from "./safetensors.ts";

/** Written by hand from the format's description: length, header, data. */
function file(header: unknown, data: Uint8Array = new Uint8Array()): Uint8Array {
  const json = Buffer.from(typeof header === "string" ? header : JSON.stringify(header));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(json.length));
  return Buffer.concat([length, json, data]);
}
const decode = (bytes: Uint8Array) => decodeSafetensors(bytes, "a.safetensors");
const refused = (bytes: Uint8Array, text: string) =>
  expect(() => decode(bytes)).toThrow(
    expect.objectContaining({ code: "bad-safetensors", message: expect.stringContaining(text) }) as Error,
  );
const two = (dtype: string, offsets: number[], more = {}) => ({
  a: { dtype, shape: [2], data_offsets: offsets, ...more },
});

describe("a safetensors file", () => {
  test("written by hand reads as meant", () => {
    const data = Buffer.from(Float32Array.of(1.5, -2).buffer);
    const { tensors, metadata } = decode(file({ __metadata__: { k: "v" }, ...two("F32", [0, 8]) }, data));
    expect(metadata).toEqual({ k: "v" });
    expect(tensors.a).toEqual({ shape: [2], data: Float32Array.of(1.5, -2) });
  });

  test("comes back as it was, whatever its tensors, and the same content gives the same bytes", () => {
    const values = fc.array(fc.double({ noNaN: true }), { maxLength: 6 });
    fc.assert(
      fc.property(fc.dictionary(fc.string(), values, { maxKeys: 5 }), fc.string(), (arrays, note) => {
        fc.pre(!("__metadata__" in arrays) && !("__proto__" in arrays));
        const tensors = Object.fromEntries(
          Object.entries(arrays).map(([name, list], i) => {
            const data = i % 2 === 0 ? Float64Array.from(list) : Float32Array.from(list);
            return [name, { shape: [list.length], data }];
          }),
        );
        const bytes = encodeSafetensors({ tensors, metadata: { note } });
        expect(bytes.length % 4).toBe(0);
        expect(decode(bytes)).toEqual({ tensors, metadata: { note } });
        const reversed = Object.fromEntries(Object.entries(tensors).reverse());
        expect(encodeSafetensors({ tensors: reversed, metadata: { note } })).toEqual(bytes);
      }),
      { numRuns: 50 },
    );
  });

  test("is refused with its fault when cut, overlapping, gapped, overlong, mistyped or no JSON", () => {
    const whole = file(two("F32", [0, 8]), new Uint8Array(8));
    for (let length = 0; length < whole.length; length++)
      expect(() => decode(whole.subarray(0, length))).toThrow();
    refused(whole.subarray(0, whole.length - 1), "truncated");
    refused(file(two("F32", [0, 8]), new Uint8Array(9)), "followed by something else");
    refused(file(two("BF16", [0, 4]), new Uint8Array(4)), 'type "BF16". Known types');
    refused(file(two("F32", [0, 4]), new Uint8Array(4)), "needs 8");
    refused(file(two("F32", [8, 16]), new Uint8Array(16)), "apart from");
    refused(file(two("F32", [0, 8], { b: 1 }), new Uint8Array(8)), "unknown key b");
    const other = { b: { dtype: "F32", shape: [2], data_offsets: [4, 12] } };
    refused(file({ ...two("F32", [0, 8]), ...other }, new Uint8Array(12)), "inside the one before");
    refused(file("{"), "not JSON");
    refused(file("[]"), "not a JSON object");
    refused(file({ __metadata__: { k: 1 } }), "not a map of text");
    refused(file('{"a":1,"a":2}'), "not JSON");
    refused(Buffer.from([255, 255, 255, 255, 255, 255, 255, 255, 0]), "header is said");
  });
});

await describeNeeding(pythonZarr, "Python's safetensors", () => {
  test("reads the same tensors and metadata", readInPython);
});

function readInPython(): void {
  const folder = mkdtempSync(join(tmpdir(), "rollbook-safetensors-"));
  const path = join(folder, "x.safetensors");
  writeFileSync(
    path,
    encodeSafetensors({
      tensors: {
        w: { shape: [2, 2], data: Float64Array.of(1, 2, 3, 4) },
        n: { shape: [3], data: Uint8Array.of(7, 8, 9) },
      },
      metadata: { k: "v" },
    }),
  );
  const program =
    "import sys,json;from safetensors import safe_open\nwith safe_open(sys.argv[1],'numpy') as f: print(json.dumps([f.metadata(),f.get_tensor('w').tolist(),f.get_tensor('n').tolist()]))";
  const { stdout } = spawnSync(python, ["-c", program, path], { encoding: "utf8" });
  rmSync(folder, { recursive: true });
  expect(JSON.parse(stdout)).toEqual([
    { k: "v" },
    [
      [1, 2],
      [3, 4],
    ],
    [7, 8, 9],
  ]);
}
