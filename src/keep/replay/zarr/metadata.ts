/** `zarr.json`: the metadata of groups and arrays as values, and as canonical JSON bytes.
 *  In: bytes from a store. Out: checked metadata, and back. Refuses everything that this package could not read
 *  correctly: a newer format, unknown types and codecs, extensions that must be understood. Does not touch stores. */
import {
  canonicalize,
  decodeUtf8,
  isObject,
  type Json,
  parseJson,
  RollbookError,
} from "../../../base/index.ts";
import {
  type BytesCodec,
  type DataType,
  type FillValue,
  formatCodecs,
  isDataType,
  itemBytes,
  parseCodecs,
  parseFill,
} from "./codecs/index.ts";

export type Attributes = Readonly<Record<string, Json>>;

export interface ArrayMetadata {
  readonly kind: "array";
  readonly dtype: DataType;
  readonly shape: readonly [rows: number, ...row: number[]];
  /** Rows of the unit that is encoded and checked separately. Only the first axis is divided. */
  readonly chunkRows: number;
  /** Rows of one stored object if chunks are packed into shards, a multiple of `chunkRows`; else 0. */
  readonly shardRows: number;
  /** Codecs of the bytes of a chunk, in order of writing. */
  readonly codecs: readonly BytesCodec[];
  readonly fillValue: FillValue;
  readonly separator: "/" | ".";
  readonly attributes: Attributes;
  readonly dimensionNames: readonly (string | null)[] | undefined;
}

export interface GroupMetadata {
  readonly kind: "group";
  readonly attributes: Attributes;
  /** Metadata of everything below this group by relative path, if the group carries it. */
  readonly consolidated: ReadonlyMap<string, NodeMetadata> | undefined;
}

export type NodeMetadata = ArrayMetadata | GroupMetadata;

/** Larger chunks are refused: no known writer makes them, and a damaged shape must not exhaust memory. */
export const MAX_CHUNK_BYTES = 2 ** 30;

export function parseNode(bytes: Uint8Array, where: string): NodeMetadata {
  return nodeOf(parseJson(decodeUtf8(bytes, where), where), where);
}

/** Canonical bytes of `node`: the same metadata has the same bytes, and the same digest. */
export function formatNode(node: NodeMetadata): Uint8Array {
  return Buffer.from(canonicalize(jsonOf(node)));
}

/** Key of the metadata of the node at `path`; "" is the root of the store. */
export function metadataKey(path: string): string {
  return path === "" ? "zarr.json" : `${path}/zarr.json`;
}

/** Key of the object with this index along the first axis of the array at `path`. */
export function chunkKey(path: string, { separator, shape }: ArrayMetadata, index: number): string {
  const name = ["c", index, ...new Array(shape.length - 1).fill(0)].join(separator);
  return path === "" ? name : `${path}/${name}`;
}

/** Number of items in one row. */
export function rowItems({ shape: [, ...row] }: ArrayMetadata): number {
  return row.reduce((product, size) => product * size, 1);
}

export function badMetadata(
  where: string,
  what: string,
  fields: Record<string, unknown> = {},
): RollbookError {
  return new RollbookError(
    "zarr-bad-metadata",
    { where, ...fields },
    `${where}: ${what}. Restore the file or write the store again.`,
  );
}

function objectOf(value: Json | undefined, where: string, name: string): Record<string, Json> {
  if (isObject(value)) return value;
  throw badMetadata(where, `${name} must be an object`);
}

function nodeOf(json: Json, where: string): NodeMetadata {
  const node = objectOf(json, where, "metadata");
  if (node.zarr_format !== 3) {
    throw new RollbookError(
      "zarr-format",
      { where, format: node.zarr_format },
      `${where}: zarr_format is ${JSON.stringify(node.zarr_format)}, this version reads 3. ` +
        "Use a version of Rollbook that knows the format, or write the store again as Zarr 3.",
    );
  }
  if (node.node_type === "array") return arrayOf(node, where);
  if (node.node_type === "group") return groupOf(node, where);
  throw badMetadata(where, `node_type is ${JSON.stringify(node.node_type)}, neither array nor group`);
}

function groupOf(node: Record<string, Json>, where: string): GroupMetadata {
  refuseExtensions(node, where, ["zarr_format", "node_type", "attributes", "consolidated_metadata"]);
  return {
    kind: "group",
    attributes: objectOf(node.attributes ?? {}, where, "attributes"),
    consolidated: consolidatedOf(node.consolidated_metadata ?? null, where),
  };
}

/** The form that zarr-python 3 writes: inline, by relative path. */
function consolidatedOf(json: Json, where: string): ReadonlyMap<string, NodeMetadata> | undefined {
  if (json === null) return undefined;
  const { kind, metadata } = objectOf(json, where, "consolidated_metadata");
  if (kind !== "inline") throw badMetadata(where, `consolidated metadata of kind ${JSON.stringify(kind)}`);
  const entries = Object.entries(objectOf(metadata, where, "consolidated_metadata.metadata"));
  return new Map(entries.map(([path, child]) => [path, nodeOf(child, `${where} (consolidated ${path})`)]));
}

const ARRAY_KEYS = [
  ...["zarr_format", "node_type", "shape", "data_type", "chunk_grid", "chunk_key_encoding", "fill_value"],
  ...["codecs", "attributes", "dimension_names", "storage_transformers"],
];

function arrayOf(node: Record<string, Json>, where: string): ArrayMetadata {
  refuseExtensions(node, where, ARRAY_KEYS);
  const dtype = node.data_type;
  if (!isDataType(dtype)) {
    throw new RollbookError(
      "zarr-unsupported",
      { where, dtype },
      `${where}: data type ${JSON.stringify(dtype)} is not supported. Convert the array to a number type, bool or string.`,
    );
  }
  if (Array.isArray(node.storage_transformers) && node.storage_transformers.length > 0)
    throw badMetadata(where, "storage transformers are not supported");
  const shape = integersOf(node.shape, where, "shape");
  const objectRows = firstAxis(configurationOf(node.chunk_grid, where, "regular").chunk_shape, {
    shape,
    where,
  });
  const { codecs, innerShape } = parseCodecs(node.codecs, { dtype, where });
  const chunkRows = innerShape === undefined ? objectRows : firstAxis(innerShape, { shape, where });
  if (objectRows % chunkRows !== 0)
    throw badMetadata(where, `shards of ${objectRows} rows are not a multiple of chunks of ${chunkRows}`);
  const metadata: ArrayMetadata = {
    kind: "array",
    dtype,
    shape: shape as [number, ...number[]],
    chunkRows,
    shardRows: innerShape === undefined ? 0 : objectRows,
    codecs,
    fillValue: fillOf(dtype, node.fill_value, where),
    separator: separatorOf(node.chunk_key_encoding, where),
    attributes: objectOf(node.attributes ?? {}, where, "attributes"),
    dimensionNames: dimensionNamesOf(node.dimension_names ?? null, { shape, where }),
  };
  refuseHugeChunks(metadata, where);
  return metadata;
}

function refuseExtensions(node: Record<string, Json>, where: string, known: readonly string[]): void {
  for (const [key, value] of Object.entries(node)) {
    if (known.includes(key)) continue;
    // The specification allows a writer to mark keys that a reader may ignore.
    const optional = typeof value === "object" && value !== null && "must_understand" in value;
    if (!optional || (value as { must_understand: Json }).must_understand !== false)
      throw badMetadata(where, `unknown key ${JSON.stringify(key)}`, { key });
  }
}

function integersOf(json: Json | undefined, where: string, name: string): number[] {
  if (Array.isArray(json) && json.length > 0 && json.every((n) => Number.isSafeInteger(n) && n >= 0))
    return json;
  throw badMetadata(where, `${name} is ${JSON.stringify(json)}, not a list of at least one whole number`);
}

function configurationOf(json: Json | undefined, where: string, name: string): Record<string, Json> {
  const named = objectOf(json, where, name);
  if (named.name !== name)
    throw badMetadata(where, `${JSON.stringify(named.name)} where only ${JSON.stringify(name)} is supported`);
  return objectOf(named.configuration ?? {}, where, name);
}

/** Rows of a chunk shape that divides the first axis only. */
function firstAxis(json: Json | undefined, { shape, where }: { shape: number[]; where: string }): number {
  const [rows, ...rest] = integersOf(json, where, "chunk shape");
  if (rest.length !== shape.length - 1)
    throw badMetadata(
      where,
      `chunk shape ${JSON.stringify(json)} does not fit shape ${JSON.stringify(shape)}`,
    );
  if (rows! < 1 || rest.some((size, axis) => size < 1 || size !== shape[axis + 1]!)) {
    throw new RollbookError(
      "zarr-unsupported",
      { where, shape, chunkShape: json },
      `${where}: chunk shape ${JSON.stringify(json)} divides more than the first axis of ${JSON.stringify(shape)}. ` +
        "Rewrite the array with chunks of whole rows.",
    );
  }
  return rows!;
}

function fillOf(dtype: DataType, json: Json | undefined, where: string): FillValue {
  parseFill(dtype, json ?? null, where);
  return json as FillValue;
}

function separatorOf(json: Json | undefined, where: string): "/" | "." {
  const { separator = "/" } = configurationOf(json, where, "default");
  if (separator === "/" || separator === ".") return separator;
  throw badMetadata(where, `chunk key separator ${JSON.stringify(separator)}`);
}

function dimensionNamesOf(
  json: Json,
  { shape, where }: { shape: number[]; where: string },
): (string | null)[] | undefined {
  if (json === null) return undefined;
  const names = Array.isArray(json) && json.every((name) => name === null || typeof name === "string");
  if (names && json.length === shape.length) return json as (string | null)[];
  throw badMetadata(
    where,
    `dimension_names ${JSON.stringify(json)} do not name the axes of ${JSON.stringify(shape)}`,
  );
}

function refuseHugeChunks(metadata: ArrayMetadata, where: string): void {
  const { dtype, chunkRows, shardRows, shape } = metadata;
  const bytes = chunkRows * rowItems(metadata) * (dtype === "string" ? 4 : itemBytes(dtype));
  if (bytes > MAX_CHUNK_BYTES || Math.max(shardRows, chunkRows) * shape.length > Number.MAX_SAFE_INTEGER)
    throw badMetadata(where, `chunks of ${bytes} bytes are larger than the limit of ${MAX_CHUNK_BYTES}`);
}

function jsonOf(node: NodeMetadata): Json {
  if (node.kind === "array") return arrayJson(node);
  const group = { zarr_format: 3, node_type: "group", attributes: node.attributes };
  if (node.consolidated === undefined) return group;
  const metadata = Object.fromEntries([...node.consolidated].map(([path, child]) => [path, jsonOf(child)]));
  return { ...group, consolidated_metadata: { kind: "inline", must_understand: false, metadata } };
}

function arrayJson(node: ArrayMetadata): Json {
  const { shape, chunkRows, shardRows } = node;
  const chunkShape = [chunkRows, ...shape.slice(1)];
  const objectShape = [shardRows || chunkRows, ...shape.slice(1)];
  return {
    zarr_format: 3,
    node_type: "array",
    shape,
    data_type: node.dtype,
    chunk_grid: { name: "regular", configuration: { chunk_shape: objectShape } },
    chunk_key_encoding: { name: "default", configuration: { separator: node.separator } },
    fill_value: node.fillValue,
    codecs: formatCodecs(node, chunkShape),
    attributes: node.attributes,
    ...(node.dimensionNames === undefined ? {} : { dimension_names: node.dimensionNames }),
  };
}
