export * from "./environment-package.ts";
export * from "./generate.ts";
export * from "./graders.ts";
export * from "./prove.ts";
export * from "./task-files.ts";
