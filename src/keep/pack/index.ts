export {
  faultsOf,
  isPack,
  type PackFacts,
  type PackFault,
  packPaths,
  readPack,
  readSignatures,
  sealPackFolder,
} from "./pack-folder.ts";
export { readTar, writeTar } from "./tar.ts";
