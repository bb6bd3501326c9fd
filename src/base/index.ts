export {
  bytesOf,
  type Column,
  type ColumnOf,
  carry,
  columnFrom,
  columnTag,
  type DType,
  digestColumn,
  dot,
  dtypeOf,
  emptyColumn,
  firstNonFinite,
  GrowingColumn,
  ITEM_BYTES,
} from "./arrays.ts";
export { canonicalize, isCanonical, type Json, MAX_DEPTH } from "./canonical-json.ts";
export { choleskyFactor, choleskySolve } from "./cholesky.ts";
export { type Clock, manualClock, parseTime, systemClock } from "./clock.ts";
export {
  DIGEST_PATTERN,
  type Digest,
  digestBytes,
  digestFromBytes,
  digestJson,
  digestTagged,
  digestToBytes,
  isDigest,
  writeHex,
} from "./digest.ts";
export { DigestTable } from "./digest-table.ts";
export { drawBeta, drawNormal } from "./distributions.ts";
export {
  asSentence,
  fileReason,
  isRollbookError,
  joinFaults,
  RollbookError,
  reasonOf,
  withRemedy,
} from "./errors.ts";
export { exp, log, log1p, softmax } from "./exact-math.ts";
export { forAll } from "./for-all.ts";
export { frozenCopy } from "./frozen-copy.ts";
export { given } from "./given.ts";
export { compareUtf8, type Id, idFault, MAX_ID_BYTES, parseId } from "./ids.ts";
export { isObject } from "./is-object.ts";
export { nearestName } from "./nearest-name.ts";
export { decodeUtf8, parseJson, parseWideJson, type WideJson } from "./parse-json.ts";
export { KeyPrefix, type Rng, rngFrom, splitKey } from "./rng.ts";
export { figure, percent, plural, printable, short, thousands } from "./words.ts";
