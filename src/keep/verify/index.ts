export type { Problem, VerifyReport } from "./report.ts";
export { verifyBook, verifyRecord } from "./verify-book.ts";
