export type { Problem, VerifyReport } from "./report.ts";
export { type VerifyOptions, verifyBook, verifyRecord } from "./verify-book.ts";
