/** Recovers the packs of dead writers: keeps intact entries, sets a torn end aside, seals the pack.
 *  In: a pack `<id>.open` whose session lock the caller holds. Out: `<id>.pack` and a report. A torn end moves to
 *  `torn/` and is never deleted. Damage that is followed by intact entries is not a torn end: the pack stays
 *  unchanged. */
import { closeSync, fsyncSync, ftruncateSync, openSync, readdirSync, readSync, renameSync } from "node:fs";
import { basename, join } from "node:path";
import type { Finding } from "../blob/index.ts";
import {
  type Lock,
  makeDirectory,
  syncDirectory,
  tryLock,
  unlinkIfThere,
  withLock,
  writeAtomically,
  writeFully,
} from "../disk/index.ts";
import { largeFault } from "./large-files.ts";
import { encodeEntry, PACK_FOOTER_KIND, PACK_LARGE_KIND } from "./pack-format.ts";
import { type BookPaths, largeFile, parseLargeName, parseLockName, parsePackName } from "./pack-names.ts";
import { type DamageStep, type EntryStep, PackReader } from "./pack-reader.ts";
import { jsonBytes, type LargeEntry, PackChain, parseLargeEntry, parsePackHeader } from "./pack-records.ts";

export interface Recovery {
  readonly pack: string;
  /** Number of blobs kept. */
  readonly blobs: number;
  readonly tornBytes: number;
  /** File with the torn bytes, relative to the book. */
  readonly tornFile?: string;
  /** Damage that is not a torn end: the pack stays open and unsealed, and its intact entries are readable. */
  readonly damage: readonly Finding[];
}

/** Action for a pack whose writer holds no lock here. `seal-even-empty`: seal the pack even if it has no blob. */
export type RecoveryRule = "leave" | "seal" | "seal-even-empty";

/** Recovers the packs of every session whose writer is dead. Skips living sessions, and packs for which `ruleOf`
 *  returns `leave`: their writer may be alive on another machine, where locks of this one do not reach. */
export async function recoverBook(
  paths: BookPaths,
  ruleOf: (pack: string) => Promise<RecoveryRule> = async () => "seal",
): Promise<Recovery[]> {
  const dead = await withLock(paths.bookLock, () => takeDeadSessions(paths));
  const reports: Recovery[] = [];
  try {
    for (const session of dead.keys())
      for (const id of openPacks(paths).filter((id) => id.startsWith(session))) {
        const rule = await ruleOf(id);
        if (rule !== "leave") reports.push(await recoverPack(paths, id, rule === "seal-even-empty"));
      }
  } finally {
    await withLock(paths.bookLock, () => {
      for (const [session, lock] of dead) {
        lock.release();
        unlinkIfThere(paths.sessionLock(session));
      }
    });
  }
  return reports;
}

/** Locks of all sessions that left packs and hold no lock. Call under the book's lock. */
function takeDeadSessions(paths: BookPaths): Map<string, Lock> {
  const left = new Set(openPacks(paths).map((id) => id.slice(0, id.lastIndexOf("-"))));
  for (const file of readdirSync(paths.locks)) {
    const session = parseLockName(file);
    if (session !== undefined) left.add(session);
  }
  const dead = new Map<string, Lock>();
  for (const session of left) {
    const lock = tryLock(paths.sessionLock(session));
    if (lock !== undefined) dead.set(session, lock);
  }
  return dead;
}

function openPacks(paths: BookPaths): string[] {
  return readdirSync(paths.packs)
    .map(parsePackName)
    .filter((pack) => pack !== undefined && !pack.sealed)
    .map((pack) => pack!.id);
}

async function recoverPack(paths: BookPaths, id: string, evenEmpty: boolean): Promise<Recovery> {
  const state = await inspect(paths, id);
  if (state.damage.length > 0) return { pack: id, blobs: state.blobs, tornBytes: 0, damage: state.damage };
  const isKept = state.blobs > 0 || (evenEmpty && state.wholeEnd > 0);
  const open = paths.openPack(id);
  const tornBytes = state.size - state.wholeEnd;
  const tornFile = tornBytes > 0 ? join("torn", `${id}.${state.wholeEnd}`) : undefined;
  const fd = openSync(open, "r+");
  try {
    if (tornFile !== undefined) setAside(paths, fd, { from: state.wholeEnd, bytes: tornBytes, tornFile });
    ftruncateSync(fd, state.wholeEnd);
    if (!state.footed && isKept) {
      const payload = jsonBytes(state.chain.footer());
      writeFully(fd, encodeEntry({ kind: PACK_FOOTER_KIND, payload }, state.wholeEnd).bytes, state.wholeEnd);
    }
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
  removeUnnamed(paths, id, state.large);
  if (isKept) renameSync(open, paths.sealedPack(id));
  else unlinkIfThere(open);
  syncDirectory(paths.packs);
  return {
    pack: id,
    blobs: state.blobs,
    tornBytes,
    ...(tornFile === undefined ? {} : { tornFile }),
    damage: [],
  };
}

interface InspectedPack {
  readonly size: number;
  /** End of the last intact entry that has only intact entries before it. */
  wholeEnd: number;
  blobs: number;
  footed: boolean;
  readonly chain: PackChain;
  readonly large: LargeEntry[];
  /** Damage that is followed by intact entries. */
  damage: Finding[];
}

async function inspect(paths: BookPaths, id: string): Promise<InspectedPack> {
  const reader = await PackReader.open(paths.openPack(id));
  const state: InspectedPack = {
    size: reader.size,
    wholeEnd: 0,
    blobs: 0,
    footed: false,
    chain: new PackChain(),
    large: [],
    damage: [],
  };
  let pending: Finding[] = [];
  try {
    for (let step = reader.next(); step !== undefined; step = reader.next()) {
      if (step === "more") {
        await reader.more();
        continue;
      }
      const finding = step.type === "damage" ? asFinding(id, step) : await unfit(paths, id, { step, state });
      if (finding !== undefined) pending.push(finding);
      else {
        state.damage.push(...pending);
        pending = [];
        if (state.damage.length === 0) state.wholeEnd = step.end;
      }
    }
  } finally {
    await reader.close();
  }
  return state;
}

/** Adds an intact entry to the state, or returns the reason why it cannot be at its position. */
async function unfit(
  paths: BookPaths,
  id: string,
  { step, state }: { step: EntryStep; state: InspectedPack },
): Promise<Finding | undefined> {
  const at = { file: `packs/${id}.open`, offset: step.offset, length: step.end - step.offset };
  if (state.footed) return { code: "bad-footer", ...at, message: "an entry stands behind the footer" };
  if (step.offset === 0 && parsePackHeader(step.bytes)?.pack !== id)
    return { code: "bad-pack-header", ...at, message: "the first entry is not the header of this pack" };
  if (step.kind === PACK_FOOTER_KIND) {
    state.footed = true;
    return undefined;
  }
  if (step.kind === PACK_LARGE_KIND) {
    const entry = parseLargeEntry(step.bytes);
    if (entry === undefined)
      return { code: "bad-large-entry", ...at, message: "not a stand-in for a large blob" };
    const fault = await largeFault(paths, id, entry);
    if (fault !== undefined) return fault;
    state.large.push(entry);
  }
  state.chain.add(step.digest);
  if (step.offset > 0) state.blobs++;
  return undefined;
}

function asFinding(id: string, step: DamageStep): Finding {
  const { code, message, offset, end } = step;
  return { code, message, file: `packs/${id}.open`, offset, length: end - offset };
}

function setAside(
  paths: BookPaths,
  fd: number,
  { from, bytes, tornFile }: { from: number; bytes: number; tornFile: string },
): void {
  const tail = Buffer.allocUnsafeSlow(bytes);
  for (let read = 0; read < bytes; ) read += readSync(fd, tail, read, bytes - read, from + read);
  makeDirectory(paths.torn);
  writeAtomically(join(paths.root, tornFile), tail, join(paths.tmp, `torn.${basename(tornFile)}`));
}

/** Large files of this pack that no entry names were never acknowledged. */
function removeUnnamed(paths: BookPaths, pack: string, named: readonly LargeEntry[]): void {
  const keep = new Set(named.map(({ digest, kind }) => largeFile({ pack, digest, kind })));
  for (const directory of [paths.large, paths.tmp])
    for (const file of readdirSync(directory))
      if (parseLargeName(file)?.pack === pack && !(directory === paths.large && keep.has(file)))
        unlinkIfThere(join(directory, file));
}
