export { readVerifiers } from "./read-verifiers.ts";
export { verifiersTraces } from "./write-verifiers.ts";
