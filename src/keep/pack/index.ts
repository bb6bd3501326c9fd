export { faultsOf, isPack, packPaths, readPack, readSignatures, sealPackFolder } from "./pack-folder.ts";
export { readTar, writeTar } from "./tar.ts";
