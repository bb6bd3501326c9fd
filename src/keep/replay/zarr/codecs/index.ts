export * from "./codec-metadata.ts";
export * from "./codecs.ts";
export * from "./crc32c.ts";
export * from "./data-types.ts";
export * from "./sharding.ts";
export * from "./vlen-utf8.ts";
