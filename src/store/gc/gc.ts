/** Removes unreferenced blobs, and reduces copies of a blob to one.
 *  In: a book. Out: a smaller book, and a report. Copies remaining blobs into new packs, makes them durable, and only
 *  then deletes old packs: a kill at any point loses nothing. Writers may continue: packs of living sessions are not
 *  touched, and a session relies only on its own puts. Refuses on damage, unless an intact copy exists elsewhere: then
 *  the damaged copy is removed. */
import { statSync } from "node:fs";
import { join } from "node:path";
import { type Clock, RollbookError } from "../../base/index.ts";
import { FOLDED_HEADS_KIND, type PackState, type SignHead } from "../../contract/index.ts";
import type { Finding } from "../blob/index.ts";
import { openBookOf } from "../book.ts";
import { tryLock } from "../disk/index.ts";
import { type HeadOptions, listOfFold } from "../head/index.ts";
import {
  type BookPaths,
  bookPaths,
  footerOf,
  largePath,
  listPacks,
  PackScan,
  ScanBlock,
} from "../pack/index.ts";
import { type RemoteBook, remoteOf } from "../remote/index.ts";
import type { Session } from "../session.ts";
import { type GcPlace, openGcPlace } from "./gc-place.ts";
import { Survey, type SurveyedErasure, type SurveyedPack } from "./gc-survey.ts";

export interface GcOptions {
  readonly clock: Clock;
  /** Signs the head that names the replaced packs. Required for a book with heads. */
  readonly sign?: SignHead | undefined;
  /** Keys whose replacements of other writers' packs are accepted (default: none). */
  readonly trusted?: ReadonlySet<string> | undefined;
  /** Only report what would be removed. */
  readonly dryRun?: boolean;
  /** Public key of `sign`, and the rule for folding its heads (default: never). Heads of the last hour stay, and fewer
   *  than 1 000 heads are not folded. */
  readonly fold?:
    | { readonly signer: string; readonly afterMs?: number; readonly atLeast?: number }
    | undefined;
  /** Continue despite damage. Damaged packs stay unchanged, but blobs that only lost records refer to are removed. */
  readonly despiteDamage?: boolean;
  /** Packs smaller than this are merged if there are at least eight of them. */
  readonly mergeBelowBytes?: number;
}

export interface GcReport {
  readonly dryRun: boolean;
  readonly packs: number;
  /** Packs left unchanged because their writer is alive or they are damaged. */
  readonly packsLeft: number;
  /** Packs replaced by new ones, or removed. */
  readonly packsReplaced: number;
  readonly blobsKept: number;
  /** Unreferenced blobs that were removed. */
  readonly blobsRemoved: number;
  /** Removed extra copies of remaining blobs. */
  readonly copiesRemoved: number;
  /** Signed heads replaced by an entry in a list. */
  readonly headsFolded: number;
  /** Bytes of removed entries and large files. */
  readonly bytesFreed: number;
  /** Kinds that this version does not know, sorted. Their blobs stay, with every blob whose digest occurs in them. */
  readonly unknownKinds: readonly string[];
  /** True if a blob of an unknown kind is not JSON. It may refer to anything, so only extra copies are removed. */
  readonly keepsAll: boolean;
  readonly damage: readonly Finding[];
}

const FOLD_AFTER_MS = 3_600_000;
const FOLD_AT_LEAST = 1000;
const MERGE_COUNT = 8;
const MERGE_BELOW_BYTES = 16 * 1024 * 1024;

export async function collectGarbage(root: string, options: GcOptions): Promise<GcReport> {
  return collectIn(await remoteOf(root), root, options);
}

/** As collectGarbage, with the bucket of the working copy; undefined for a book on disk. */
export function collectIn(
  remote: RemoteBook | undefined,
  root: string,
  options: GcOptions,
): Promise<GcReport> {
  return withSurvey(root, { ...options, remote }, (survey, at) => new Collection(at, survey, options).run());
}

/** Surveys the book and runs work on the survey, while no other collection runs. */
export async function withSurvey<T>(
  root: string,
  options: Pick<GcOptions, "clock" | "dryRun" | "despiteDamage" | "trusted" | "sign" | "fold"> & {
    readonly remote: RemoteBook | undefined;
    readonly erasure?: SurveyedErasure;
  },
  work: (survey: Survey, at: GcScene) => Promise<T>,
): Promise<T> {
  const paths = bookPaths(root);
  const { remote } = options;
  const store = await openBookOf(remote, root, { clock: options.clock, mode: "read" });
  const lock = tryLock(paths.gcLock);
  let place: GcPlace | undefined;
  try {
    if (lock === undefined) throw alreadyRunning(root);
    if (options.dryRun !== true) place = await openGcPlace(paths, remote, options);
    const resting = await (place === undefined ? remote?.packsAtRest() : place.resting());
    const survey = new Survey(paths, { ...options, fold: foldRule(options), resting });
    await survey.run(store);
    if (survey.findings.length > 0 && options.despiteDamage !== true) throw refused(root, survey.findings);
    return await work(survey, { paths, place });
  } catch (error) {
    // Report the first error: if the bucket cannot be reached, ending fails too.
    await place?.end().catch(() => undefined);
    place = undefined;
    throw error;
  } finally {
    try {
      await place?.end();
    } finally {
      lock?.release();
      await store.close();
    }
  }
}

/** A book, and the place where its packs are replaced. A dry run has no place. */
export interface GcScene {
  readonly paths: BookPaths;
  readonly place: GcPlace | undefined;
}

/** Replaces packs by new ones without the removed blobs. */
export class Collection {
  readonly #paths: BookPaths;
  readonly #place: GcPlace | undefined;
  readonly #survey: Survey;
  readonly #options: Pick<GcOptions, "sign" | "mergeBelowBytes">;
  readonly #tally = { blobsKept: 0, blobsRemoved: 0, copiesRemoved: 0, headsFolded: 0, bytesFreed: 0 };

  constructor(
    { paths, place }: GcScene,
    survey: Survey,
    options: Pick<GcOptions, "sign" | "mergeBelowBytes">,
  ) {
    this.#paths = paths;
    this.#place = place;
    this.#survey = survey;
    this.#options = options;
  }

  async run(): Promise<GcReport> {
    const { packs, findings, unknownKinds, keepsAll } = this.#survey;
    const replaced = this.#choose();
    if (this.#place !== undefined) {
      if (replaced.length > 0 && this.#survey.hasHeads && this.#options.sign === undefined)
        throw unsigned(this.#paths.root);
      await this.#copyKept(replaced, this.#place);
      await this.#place.remove(replaced.map(({ name }) => name.id));
    }
    return {
      dryRun: this.#place === undefined,
      packs: packs.length,
      packsLeft: packs.filter((pack) => !isTouchable(pack)).length,
      packsReplaced: replaced.length,
      ...this.#tally,
      unknownKinds,
      keepsAll,
      damage: findings,
    };
  }

  /** Packs worth replacing: packs with something to remove, and small packs if there are many. */
  #choose(): SurveyedPack[] {
    const touchable = this.#survey.packs.filter(isTouchable);
    const wasteful = new Set(touchable.filter((pack) => this.#countWaste(pack)));
    const below = this.#options.mergeBelowBytes ?? MERGE_BELOW_BYTES;
    const isSmall = (pack: SurveyedPack) => statSync(this.#paths.sealedPack(pack.name.id)).size < below;
    const small = touchable.filter(isSmall);
    const merged = new Set(small.length >= MERGE_COUNT ? small : []);
    return touchable.filter((pack) => wasteful.has(pack) || merged.has(pack));
  }

  /** Counts kept and removed blobs; true if any blob is removed. */
  #countWaste(pack: SurveyedPack): boolean {
    const tally = this.#tally;
    const keptBefore = tally.blobsKept;
    let blobs = 0;
    for (const { digest, bytes } of this.#survey.blobsOf(pack)) {
      blobs++;
      if (this.#survey.keeps(digest, pack)) tally.blobsKept++;
      else {
        tally[this.#survey.fateOf(digest)]++;
        tally.bytesFreed += bytes;
      }
    }
    return tally.blobsKept - keptBefore < blobs;
  }

  async #copyKept(replaced: readonly SurveyedPack[], place: GcPlace): Promise<void> {
    if (replaced.length === 0) return;
    const { sign } = this.#options;
    const session = await place.session();
    const block = new ScanBlock();
    for (const pack of replaced) await this.#copyPack(pack, { session, block });
    const states = replaced.flatMap(({ name }) => footerOf(this.#paths, name.id) ?? []);
    const last = sign === undefined ? {} : { replaced: states, ...this.#fold(session, states) };
    // A session that failed in the background closes without an error; flush throws it, and then nothing is removed.
    await session.flush();
    await place.settle(
      last,
      replaced.map(({ name }) => name.id),
    );
  }

  /** Fields of the last head that replace the folded heads. */
  #fold(session: Session, replaced: readonly PackState[]): Pick<HeadOptions, "folded" | "others"> {
    const { fold } = this.#survey;
    if (fold === undefined) return {};
    const list = listOfFold(fold, this.#survey.foldedBefore);
    const gone = new Set(replaced.map(({ pack }) => pack));
    const here = new Set(listPacks(this.#paths).map(({ id }) => id));
    return {
      folded: { heads: list.length / 32, list: session.put(FOLDED_HEADS_KIND, list) },
      others: [...fold.packs.values()].filter(({ pack }) => here.has(pack) && !gone.has(pack)),
    };
  }

  async #copyPack(
    pack: SurveyedPack,
    { session, block }: { session: Session; block: ScanBlock },
  ): Promise<void> {
    const scan = await PackScan.open(this.#paths, pack.name, { block });
    if (scan === undefined) throw vanished(pack.name.id);
    try {
      for (let item = scan.next(); item !== undefined; item = scan.next()) {
        if (item === "more") await scan.more();
        else if (item.type === "damage") this.#passOver(item.finding);
        else if (item.type === "blob") {
          if (this.#survey.keeps(item.digest, pack)) session.put(item.kind, item.bytes);
        } else if (item.type === "stand-in" && this.#survey.keeps(item.entry.digest, pack))
          session.adoptLarge(item.entry, join(this.#paths.root, largePath(pack.name.id, item.entry)));
      }
    } finally {
      await scan.close();
    }
  }

  /** Skips damage that has an intact copy elsewhere; any other damage is newer than the survey. */
  #passOver(finding: Finding): void {
    if (!this.#survey.isMadeGood(finding)) throw refused(this.#paths.root, [finding]);
  }
}

function isTouchable(pack: SurveyedPack): boolean {
  return pack.atRest && !pack.damaged;
}

function foldRule({ clock, sign, fold }: Pick<GcOptions, "clock" | "sign" | "fold">) {
  if (sign === undefined || fold === undefined) return undefined;
  const { signer, afterMs = FOLD_AFTER_MS, atLeast = FOLD_AT_LEAST } = fold;
  return { signer, beforeMs: clock.nowMs() - afterMs, atLeast };
}

function alreadyRunning(root: string): RollbookError {
  return new RollbookError(
    "gc-running",
    { root },
    `${root}: another gc is at work. Wait until it has finished.`,
  );
}

function refused(root: string, findings: readonly Finding[]): RollbookError {
  const [first] = findings;
  return new RollbookError(
    "gc-damage",
    { root, findings },
    `${root} is damaged in ${findings.length === 1 ? "one place" : `${findings.length} places`}, first ${first!.file} at ${first!.offset}: ${first!.message}. ` +
      "Nothing was removed, because a lost record may refer to any blob. Restore the files from a copy, or import the lost records again: `rollbook verify` says how. Other commands work without gc.",
  );
}

function unsigned(root: string): RollbookError {
  return new RollbookError(
    "gc-unsigned",
    { root },
    `${root} has signed heads, which name its packs: gc must sign what it replaces. Nothing was removed. Make a key with \`rollbook keys new\`, or put yours back.`,
  );
}

function vanished(pack: string): RollbookError {
  return new RollbookError(
    "pack-vanished",
    { pack },
    `pack ${pack} was removed by something else during gc.`,
  );
}
