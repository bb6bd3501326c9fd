export { runDemo } from "./demo/index.ts";
