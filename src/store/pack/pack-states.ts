/** States of packs in the form that heads use: of a sealed pack from its footer alone, of an open pack from all its
 *  headers.
 *  In: names of packs. Out: entries and the hash over them. Checks neither; a scan does. */
import { closeSync, fstatSync, fsyncSync, openSync, readSync } from "node:fs";
import type { PackState } from "../../contract/index.ts";
import { isMissing } from "../disk/index.ts";
import { HEADER_BYTES, headerKind, PACK_FOOTER_KIND, readHeader } from "./pack-format.ts";
import { walkHeaders } from "./pack-headers.ts";
import type { BookPaths } from "./pack-names.ts";
import { PackChain, parseFooter } from "./pack-records.ts";

/** Bytes to read at the end of a pack; a footer takes about 200. */
const TAIL_BYTES = 512;

/** Undefined if the pack is missing or has no footer; a scan reports it. */
export function footerOf(paths: BookPaths, id: string): PackState | undefined {
  return withFile(paths.sealedPack(id), (fd) => {
    const { size } = fstatSync(fd);
    const from = Math.max(0, size - TAIL_BYTES);
    const tail = Buffer.alloc(size - from);
    readSync(fd, tail, 0, tail.length, from);
    for (let at = tail.length - HEADER_BYTES - 4; at >= 0; at -= 8) {
      const header = readHeader(tail, { at, offset: from + at });
      if (header === undefined || headerKind(tail, at, header) !== PACK_FOOTER_KIND) continue;
      const { payloadAt, payloadEnd } = header.layout;
      const footer = parseFooter(tail.subarray(at + payloadAt, at + payloadEnd));
      if (footer === undefined) return undefined;
      return { pack: id, entries: footer.entries, chain: footer.chain.slice("sha256:".length) };
    }
    return undefined;
  });
}

/** State on disk of another writer's open pack. Makes the pack durable first, so that a crash cannot remove entries
 *  that a head names. */
export function openPackState(paths: BookPaths, id: string): PackState | undefined {
  return withFile(paths.openPack(id), (fd) => {
    const { size } = fstatSync(fd);
    fsyncSync(fd);
    const chain = new PackChain();
    walkHeaders(fd, { from: 0, size }, ({ digest }) => chain.add(digest));
    return chain.entries === 0 ? undefined : chain.state(id);
  });
}

function withFile<T>(path: string, work: (fd: number) => T): T | undefined {
  let fd: number;
  try {
    fd = openSync(path, "r");
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
  try {
    return work(fd);
  } finally {
    closeSync(fd);
  }
}
