export { countBy, namesBy, pivot, sumBy } from "./group-ops.ts";
export { flatten, numberOf, recordOps, whereLabel, whereNumber } from "./record-ops.ts";
export { drawRecords, type JsonRecord, SCHEMAS, type Schema } from "./schema.ts";
export { leader, shapeOps, summary } from "./shape-ops.ts";
