export * from "./random-words.ts";
export * from "./student-t.ts";
