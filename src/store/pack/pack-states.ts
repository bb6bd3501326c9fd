/** How far packs have come, as heads name it: of a sealed pack by its footer alone, of an open one by all of its headers.
 *  In: names of packs. Out: entries and the hash over them. Checks neither: a scan does. */
import { closeSync, fstatSync, fsyncSync, openSync, readSync } from "node:fs";
import type { PackState } from "../../contract/index.ts";
import { isMissing } from "../disk/index.ts";
import { HEADER_BYTES, headerKind, PACK_FOOTER_KIND, readHeader } from "./pack-format.ts";
import { walkHeaders } from "./pack-headers.ts";
import type { BookPaths } from "./pack-names.ts";
import { PackChain, parseFooter } from "./pack-records.ts";

/** A footer takes about 200 bytes. */
const TAIL_BYTES = 512;

/** Undefined if the pack is gone, or ends without a footer: a scan says so. */
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

/** What of another writer's open pack is on disk: it is made durable first, so that no crash takes what a head names. */
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
