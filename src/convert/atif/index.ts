export { readAtif } from "./read-atif.ts";
export { atifTrajectories } from "./write-atif.ts";
