export { largePath, linkLarge, readLarge, writeLarge } from "./large-files.ts";
export { PackFiles } from "./pack-files.ts";
export { LARGE_BYTES, PACK_FOOTER_KIND, PACK_HEADER_KIND, PACK_LARGE_KIND } from "./pack-format.ts";
export type { HeaderVisit } from "./pack-headers.ts";
export {
  type BookPaths,
  bookPaths,
  type PackName,
  packId,
  parseLargeName,
  parseLockName,
  sessionName,
} from "./pack-names.ts";
export { openPack, type PackReader, type PackStep, ScanBlock } from "./pack-reader.ts";
export {
  bookFault,
  bookIdOf,
  encodeBook,
  jsonBytes,
  type LargeEntry,
  type PackHeader,
  parseFooter,
  parseLargeEntry,
} from "./pack-records.ts";
export { PackWriter, writeError } from "./pack-writer.ts";
export { type Recovery, recoverBook } from "./recover.ts";
export { listPacks, type PackItem, PackScan, scanBook } from "./scan-book.ts";
