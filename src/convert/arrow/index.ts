export { type ArrowType, writeArrowRows } from "./arrow-file.ts";
