/** Names in a book directory, and their parsing. A session is one writer's use of the book. A pack `<session>-<number>`
 *  belongs to its session, a large file to its pack. */
import { join } from "node:path";
import { type Digest, isDigest } from "../../base/index.ts";
import { isKind } from "../blob/index.ts";

export interface PackName {
  readonly id: string;
  readonly session: string;
  readonly sealed: boolean;
}

const SESSION = String.raw`\d{8}T\d{9}Z-[0-9a-f]{12}`;
const PACK = new RegExp(`^((${SESSION})-\\d{6})\\.(open|pack)$`);
const LOCK = new RegExp(`^(${SESSION})\\.lock$`);
const LARGE = new RegExp(`^(${SESSION}-\\d{6})\\.([0-9a-f]{64})\\.(.+)$`);

export function parsePackName(file: string): PackName | undefined {
  const match = PACK.exec(file);
  if (match === null) return undefined;
  return { id: match[1]!, session: match[2]!, sealed: match[3] === "pack" };
}

/** Session of a lock file. */
export function parseLockName(file: string): string | undefined {
  return LOCK.exec(file)?.[1];
}

export function sessionName(startedAtMs: number, digest: Digest): string {
  const stamp = new Date(startedAtMs).toISOString().replace(/[-:.]/g, "");
  return `${stamp}-${digest.slice(7, 19)}`;
}

export function packId(session: string, number: number): string {
  return `${session}-${String(number).padStart(6, "0")}`;
}

interface LargeName {
  readonly pack: string;
  readonly digest: Digest;
  readonly kind: string;
}

export function largeFile({ pack, digest, kind }: LargeName): string {
  return `${pack}.${digest.slice(7)}.${kind}`;
}

export function parseLargeName(file: string): LargeName | undefined {
  const match = LARGE.exec(file);
  if (match === null || !isKind(match[3]!)) return undefined;
  const digest = `sha256:${match[2]}`;
  return isDigest(digest) ? { pack: match[1]!, digest, kind: match[3]! } : undefined;
}

export interface BookPaths {
  readonly root: string;
  readonly bookJson: string;
  readonly packs: string;
  readonly large: string;
  readonly torn: string;
  readonly tmp: string;
  readonly locks: string;
  readonly bookLock: string;
  readonly gcLock: string;
  readonly catalog: string;
  readonly head: string;
  openPack(id: string): string;
  sealedPack(id: string): string;
  sessionLock(session: string): string;
}

export function bookPaths(root: string): BookPaths {
  const packs = join(root, "packs");
  const locks = join(root, "locks");
  return {
    root,
    bookJson: join(root, "book.json"),
    packs,
    large: join(root, "large"),
    torn: join(root, "torn"),
    tmp: join(root, "tmp"),
    locks,
    bookLock: join(locks, "book.lock"),
    gcLock: join(locks, "gc.lock"),
    catalog: join(root, "catalog.db"),
    head: join(root, "head.json"),
    openPack: (id) => join(packs, `${id}.open`),
    sealedPack: (id) => join(packs, `${id}.pack`),
    sessionLock: (session) => join(locks, `${session}.lock`),
  };
}
