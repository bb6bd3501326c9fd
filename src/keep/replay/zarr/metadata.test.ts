import { describe, expect, it } from "vitest";
import { isRollbookError } from "../../../base/errors.ts";
import { chunkKey, formatNode, parseNode } from "./metadata.ts";

/** Metadata as zarr-python 3.1.6 writes it. */
const FOREIGN = {
  shape: [10, 3],
  data_type: "float32",
  chunk_grid: { name: "regular", configuration: { chunk_shape: [4, 3] } },
  chunk_key_encoding: { name: "default", configuration: { separator: "/" } },
  fill_value: "NaN",
  codecs: [
    { name: "bytes", configuration: { endian: "little" } },
    { name: "zstd", configuration: { level: 0, checksum: false } },
  ],
  attributes: { unit: "m" },
  dimension_names: ["row", null],
  zarr_format: 3,
  node_type: "array",
  storage_transformers: [],
};
const SHARDING = {
  name: "sharding_indexed",
  configuration: {
    chunk_shape: [2, 3],
    codecs: [{ name: "bytes", configuration: { endian: "little" } }],
    index_codecs: [{ name: "bytes", configuration: { endian: "little" } }, { name: "crc32c" }],
    index_location: "end",
  },
};

const parse = (json: unknown) => parseNode(Buffer.from(JSON.stringify(json)), "a/zarr.json");
const faultOf = (json: unknown) => {
  try {
    parse(json);
  } catch (error) {
    if (isRollbookError(error)) return `${error.code}: ${error.message}`;
    throw error;
  }
  return "accepted";
};

describe("zarr.json", () => {
  it("of another writer is read as what it says", () => {
    expect(parse(FOREIGN)).toEqual({
      kind: "array",
      dtype: "float32",
      shape: [10, 3],
      chunkRows: 4,
      shardRows: 0,
      codecs: [{ name: "zstd", level: 0, checksum: false }],
      fillValue: "NaN",
      separator: "/",
      attributes: { unit: "m" },
      dimensionNames: ["row", null],
    });
  });

  it("is canonical: parsing and formatting again gives the same bytes", () => {
    for (const json of [
      FOREIGN,
      { ...FOREIGN, codecs: [SHARDING] },
      { zarr_format: 3, node_type: "group" },
    ]) {
      const bytes = formatNode(parse(json));
      expect(formatNode(parseNode(bytes, "again"))).toEqual(bytes);
    }
  });

  it("with shards has rows per chunk and per shard", () => {
    expect(parse({ ...FOREIGN, codecs: [SHARDING] })).toMatchObject({
      chunkRows: 2,
      shardRows: 4,
      codecs: [],
    });
  });

  it("names chunks by their position along every axis", () => {
    const node = parse(FOREIGN);
    const flat = parse({
      ...FOREIGN,
      chunk_key_encoding: { name: "default", configuration: { separator: "." } },
    });
    expect(node.kind === "array" && chunkKey("a", node, 2)).toBe("a/c/2/0");
    expect(flat.kind === "array" && chunkKey("", flat, 2)).toBe("c.2.0");
  });

  it.each<[string, object, string]>([
    [
      "a newer format",
      { zarr_format: 4 },
      "zarr-format: a/zarr.json: zarr_format is 4, this version reads 3",
    ],
    ["format 2", { zarr_format: 2 }, "zarr-format"],
    ["another kind of node", { node_type: "link" }, "neither array nor group"],
    ["an unknown type", { data_type: "complex64" }, 'data type "complex64" is not supported'],
    ["an unknown codec", { codecs: ["bytes", { name: "blosc" }] }, 'the codec "blosc" is not supported'],
    [
      "an unknown setting of a codec",
      { codecs: ["bytes", { name: "crc32c", configuration: { seed: 1 } }] },
      '"seed" of crc32c',
    ],
    ["big-endian items", { codecs: [{ name: "bytes", configuration: { endian: "big" } }] }, "big"],
    ["no codec", { codecs: [] }, "bytes must come first"],
    ["strings as bytes", { data_type: "string", fill_value: "" }, "vlen-utf8 must come first"],
    ["a transpose", { codecs: ["transpose", "bytes"] }, "bytes must come first"],
    ["codecs after shards", { codecs: [SHARDING, { name: "crc32c" }] }, "after sharding_indexed"],
    [
      "shards that are not whole chunks",
      { codecs: [{ ...SHARDING, configuration: { ...SHARDING.configuration, chunk_shape: [3, 3] } }] },
      "not a multiple",
    ],
    [
      "chunks along the second axis",
      { chunk_grid: { name: "regular", configuration: { chunk_shape: [4, 2] } } },
      "divides more than the first axis",
    ],
    [
      "chunks of another rank",
      { chunk_grid: { name: "regular", configuration: { chunk_shape: [4] } } },
      "does not fit shape",
    ],
    [
      "chunks of no rows",
      { chunk_grid: { name: "regular", configuration: { chunk_shape: [0, 3] } } },
      "divides more",
    ],
    [
      "chunks beyond all memory",
      { shape: [1e12, 3], chunk_grid: { name: "regular", configuration: { chunk_shape: [1e12, 3] } } },
      "larger than the limit",
    ],
    ["an irregular grid", { chunk_grid: { name: "rectilinear" } }, 'only "regular" is supported'],
    ["a negative shape", { shape: [-1, 3] }, "shape is [-1,3]"],
    ["no axis", { shape: [] }, "shape is []"],
    ["a fill value of another type", { fill_value: "zero" }, 'fill_value "zero" is not a float32'],
    ["a fill value out of range", { data_type: "uint8", fill_value: 256 }, "fill_value 256 is not a uint8"],
    ["a fill value without exact double", { data_type: "int64", fill_value: 2 ** 60 }, "is not a int64"],
    ["an extension that must be understood", { pyramid: { levels: 3 } }, 'unknown key "pyramid"'],
    ["storage transformers", { storage_transformers: [{ name: "x" }] }, "storage transformers"],
    ["too few dimension names", { dimension_names: ["row"] }, "do not name the axes"],
  ])("with %s is refused", (_name, change, fault) => {
    expect(faultOf({ ...FOREIGN, ...change })).toContain(fault);
  });

  it("may carry extensions that say they need not be understood", () => {
    expect(faultOf({ ...FOREIGN, pyramid: { must_understand: false } })).toBe("accepted");
  });

  it("that is not JSON, or says a thing twice, is refused with its place", () => {
    expect(() => parseNode(Buffer.from('{"zarr_format":3,"zarr_format":3}'), "a/zarr.json")).toThrow(
      "a/zarr.json:1:18",
    );
    expect(() => parseNode(Buffer.from("{"), "a/zarr.json")).toThrow("a/zarr.json:1:2");
  });
});
