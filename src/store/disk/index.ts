export * from "./boot-id.ts";
export * from "./files.ts";
export * from "./group-commit.ts";
export * from "./locks.ts";
export * from "./make-directory.ts";
export * from "./sqlite.ts";
export * from "./when-free.ts";
export * from "./write-block.ts";
