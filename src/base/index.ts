export { type Column, type ColumnOf, columnFrom, type DType, digestColumn } from "./arrays.ts";
export { canonicalize, type Json } from "./canonical-json.ts";
export { type Clock, manualClock, systemClock } from "./clock.ts";
export { type Digest, digestBytes, digestJson, isDigest } from "./digest.ts";
export { isRollbookError, RollbookError } from "./errors.ts";
export { compareUtf8, type Id, parseId } from "./ids.ts";
export { decodeUtf8, parseJson } from "./parse-json.ts";
export { type Rng, rngFrom } from "./rng.ts";
