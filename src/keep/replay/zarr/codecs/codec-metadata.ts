/** The `codecs` list of `zarr.json`: the codec chains that we read and write.
 *  In: JSON. Out: the bytes → bytes codecs of a chunk, and the chunk shape if chunks are in shards; and back. */
import { type Json, RollbookError } from "../../../../base/index.ts";
import type { BytesCodec } from "./codecs.ts";
import type { DataType } from "./data-types.ts";

interface CodecContext {
  dtype: DataType;
  where: string;
}

interface ParsedCodecs {
  codecs: readonly BytesCodec[];
  /** Chunk shape within a shard; undefined if each chunk is a separate object. */
  innerShape: Json | undefined;
}

export function parseCodecs(json: Json | undefined, context: CodecContext): ParsedCodecs {
  const [first, ...rest] = namedList(json, context);
  if (first?.name !== "sharding_indexed")
    return { codecs: parseChain(first, rest, context), innerShape: undefined };
  if (rest.length > 0) throw unsupported(context, "codecs after sharding_indexed");
  const { chunk_shape, codecs, index_codecs, index_location = "end", ...others } = first.configuration;
  refuseOthers(others, "sharding_indexed", context);
  if (index_location !== "end")
    throw unsupported(context, `a shard index at the ${JSON.stringify(index_location)}`);
  const index = namedList(index_codecs, context);
  if (index.length !== 2 || index[0]!.name !== "bytes" || index[1]!.name !== "crc32c")
    throw unsupported(context, "shard index codecs other than bytes, crc32c");
  refuseBigEndian(index[0]!, context);
  const [inner, ...innerRest] = namedList(codecs, context);
  return { codecs: parseChain(inner, innerRest, context), innerShape: chunk_shape ?? null };
}

export function formatCodecs(
  { dtype, codecs, shardRows }: { dtype: DataType; codecs: readonly BytesCodec[]; shardRows: number },
  chunkShape: readonly number[],
): Json {
  const chain = [serializer(dtype), ...codecs.map(formatCodec)];
  if (shardRows === 0) return chain;
  return [
    {
      name: "sharding_indexed",
      configuration: {
        chunk_shape: chunkShape,
        codecs: chain,
        index_codecs: [LITTLE_ENDIAN, { name: "crc32c" }],
        index_location: "end",
      },
    },
  ];
}

const LITTLE_ENDIAN = { name: "bytes", configuration: { endian: "little" } };

function serializer(dtype: DataType): Json {
  if (dtype === "string") return { name: "vlen-utf8" };
  return dtype === "bool" || dtype === "int8" || dtype === "uint8" ? { name: "bytes" } : LITTLE_ENDIAN;
}

function formatCodec(codec: BytesCodec): Json {
  const { name, ...configuration } = codec;
  return name === "crc32c" ? { name } : { name, configuration };
}

interface NamedCodec {
  name: string;
  configuration: Readonly<Record<string, Json>>;
}

/** A codec without configuration may be named by a bare string. */
function namedList(json: Json | undefined, context: CodecContext): NamedCodec[] {
  if (!Array.isArray(json)) throw unsupported(context, "a codecs entry that is not a list");
  return json.map((item: Json) => {
    if (typeof item === "string") return { name: item, configuration: {} };
    const { name, configuration } = (item ?? {}) as Record<string, Json>;
    if (typeof name !== "string") throw unsupported(context, `the codec ${JSON.stringify(item)}`);
    return { name, configuration: (configuration ?? {}) as Record<string, Json> };
  });
}

function parseChain(
  first: NamedCodec | undefined,
  rest: readonly NamedCodec[],
  context: CodecContext,
): BytesCodec[] {
  const expected = context.dtype === "string" ? "vlen-utf8" : "bytes";
  if (first?.name !== expected)
    throw unsupported(context, `${JSON.stringify(first?.name)} where ${expected} must come first`);
  if (expected === "bytes") refuseBigEndian(first, context);
  return rest.map((codec) => parseCodec(codec, context));
}

function parseCodec({ name, configuration }: NamedCodec, context: CodecContext): BytesCodec {
  const { level, checksum = false, ...others } = configuration;
  switch (name) {
    case "gzip":
      refuseOthers({ ...others, ...("checksum" in configuration ? { checksum } : {}) }, name, context);
      return { name, level: levelOf(level, [0, 9], context) };
    case "zstd":
      refuseOthers(others, name, context);
      if (typeof checksum !== "boolean")
        throw unsupported(context, "a zstd checksum that is not true or false");
      return { name, level: levelOf(level, [-131072, 22], context), checksum };
    case "crc32c":
      refuseOthers(configuration, name, context);
      return { name };
    default:
      throw unsupported(context, `the codec ${JSON.stringify(name)}`);
  }
}

function levelOf(level: Json | undefined, [low, high]: [number, number], context: CodecContext): number {
  if (Number.isInteger(level) && (level as number) >= low && (level as number) <= high)
    return level as number;
  throw unsupported(context, `compression level ${JSON.stringify(level)}`);
}

function refuseOthers(others: Readonly<Record<string, Json>>, name: string, context: CodecContext): void {
  const [key] = Object.keys(others);
  if (key !== undefined) throw unsupported(context, `the setting ${JSON.stringify(key)} of ${name}`);
}

function refuseBigEndian({ configuration }: NamedCodec, context: CodecContext): void {
  const { endian = "little", ...others } = configuration;
  refuseOthers(others, "bytes", context);
  if (endian !== "little") throw unsupported(context, `${JSON.stringify(endian)}-endian items`);
}

function unsupported({ where }: CodecContext, what: string): RollbookError {
  return new RollbookError(
    "zarr-unsupported",
    { where, what },
    `${where}: ${what} is not supported. ` +
      "Rewrite the array with bytes or vlen-utf8, then gzip, zstd or crc32c, with or without sharding_indexed.",
  );
}
