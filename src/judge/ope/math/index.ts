export { factor, solve } from "./cholesky.ts";
export { RandomWords } from "./random-words.ts";
export { normalQuantile, studentCdf, studentQuantile } from "./student-t.ts";
