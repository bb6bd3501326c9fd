export * from "./quantile.ts";
export * from "./random-words.ts";
export * from "./student-t.ts";
