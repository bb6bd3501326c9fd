export { isMissing, syncDirectory, unlinkIfThere, writeAtomically, writeFully } from "./files.ts";
export { type Lock, tryLock, withLock } from "./locks.ts";
export { makeDirectory } from "./make-directory.ts";
export {
  isBusy,
  isCorrupt,
  openSqlite,
  type Sqlite,
  type SqlRow,
  type SqlValue,
  type Statement,
} from "./sqlite.ts";
export { WriteBlock } from "./write-block.ts";
