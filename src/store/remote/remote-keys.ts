/** The object keys of a book in a bucket. Beside the packs of a book on disk there are parts: the bytes that each flush
 *  added to an open pack, named by their offset. A sealed pack replaces its parts. */

export const BOOK_KEY = "book.json";
export const PACKS = "packs/";
/** Listed with the packs, so that their listing shows a change of this object. */
export const GC_KEY = "packs/gc.json";
export const PARTS = "parts/";
export const LARGE = "large/";
export const SESSIONS = "sessions/";

export function packKey(id: string): string {
  return `${PACKS}${id}.pack`;
}

/** Offsets have sixteen digits, so that the order of the keys is that of the bytes. */
export function partKey(id: string, offset: number): string {
  return `${PARTS}${id}/${String(offset).padStart(16, "0")}`;
}

export function parsePartKey(key: string): { id: string; offset: number } | undefined {
  const match = /^parts\/([^/]+)\/(\d{16})$/.exec(key);
  return match === null ? undefined : { id: match[1]!, offset: Number(match[2]) };
}

export function parsePackKey(key: string): string | undefined {
  return /^packs\/([^/]+)\.pack$/.exec(key)?.[1];
}

export function sessionKey(session: string): string {
  return `${SESSIONS}${session}`;
}

/** Session of a pack, by its name. */
export function sessionOf(pack: string): string {
  return pack.slice(0, pack.lastIndexOf("-"));
}
