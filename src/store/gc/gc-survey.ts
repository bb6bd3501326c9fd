/** The survey before a collection: packs at rest, reachable blobs, and the copy of each blob to keep. In: a book, and
 *  the records to erase, if any. Out: a survey. Reads and checks everything, changes nothing. */
import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { type Digest, isDigest, reasonOf } from "../../base/index.ts";
import { Attestation } from "../../contract/index.ts";
import { BlobIndex, type BlobStore, type Finding } from "../blob/index.ts";
import { digestsInUnknown, isRecordKind, isRootKind, isUnknownKind, keptBy } from "../catalog/index.ts";
import { isMissing } from "../disk/index.ts";
import { type FoldRule, HeadCheck, type HeadFold, planFold } from "../head/index.ts";
import {
  type BookPaths,
  type LargeEntry,
  largeFault,
  largePath,
  listPacks,
  PACK_FOOTER_KIND,
  PACK_HEADER_KIND,
  PACK_LARGE_KIND,
  PackFiles,
  type PackItem,
  type PackName,
  PackScan,
  parseLargeEntry,
  parseLockName,
  ScanBlock,
} from "../pack/index.ts";

export interface SurveyedPack {
  readonly name: PackName;
  /** False for packs of living writers and unsealed packs: they are read, never rewritten. */
  readonly atRest: boolean;
  damaged: boolean;
}

/** Records and roots that are treated as removed. */
export interface SurveyedErasure {
  /** Records to remove even if they are referenced. Blobs that only they reach are removed too. */
  readonly records: ReadonlySet<Digest>;
  /** Roots to remove unless a remaining record refers to them. A signature does not count as such a record. */
  readonly unlessNeeded: ReadonlySet<Digest>;
  /** Remaining records whose references to `unlessNeeded` do not count. */
  readonly despite: ReadonlySet<Digest>;
}

interface SurveyOptions {
  readonly erasure?: SurveyedErasure | undefined;
  /** Keys that may confirm the replacement of a pack, beside the signer of the head that names the pack. */
  readonly trusted?: ReadonlySet<string> | undefined;
  /** For a book in a bucket: packs whose sessions have ended, on any machine. */
  readonly resting?: ReadonlySet<string> | undefined;
  /** Rule for the heads to fold (default: no fold). */
  readonly fold?: Omit<FoldRule, "isRemovable"> | undefined;
}

const NO_ERASURE: SurveyedErasure = { records: new Set(), unlessNeeded: new Set(), despite: new Set() };

export class Survey {
  readonly packs: SurveyedPack[] = [];
  /** Damage that lost data of the book. */
  readonly findings: Finding[] = [];
  readonly #struck: { pack: SurveyedPack; finding: Finding }[] = [];
  readonly #paths: BookPaths;
  /** One copy of each blob: `file` is twice the number of its pack, plus 1 if it may refer to others. */
  readonly #copies = new BlobIndex();
  /** Large blobs: the copy to keep, until its file has been read. */
  readonly #unread = new Map<Digest, { readonly pack: SurveyedPack; readonly entry: LargeEntry }>();
  /** Large blobs whose copy in `#copies` is damaged, with no intact copy so far. */
  readonly #spoilt = new Set<Digest>();
  readonly #reachable = new BlobIndex();
  readonly #roots: Digest[] = [];
  /** Blobs put by living writers: a reference to them may follow. */
  readonly #living: Digest[] = [];
  readonly #erasure: SurveyedErasure;
  /** Erased records in the book, and the blobs that only they reach. */
  readonly #doomed = new Set<Digest>();
  readonly #unknownKinds = new Set<string>();
  readonly #trusted: ReadonlySet<string>;
  readonly #foldRule: SurveyOptions["fold"];
  readonly #resting: ReadonlySet<string> | undefined;
  #heads: HeadCheck | undefined;
  #fold: HeadFold | undefined;
  #foldedBefore: Uint8Array[] = [];
  #keepsAll = false;

  constructor(
    paths: BookPaths,
    { erasure = NO_ERASURE, trusted = new Set(), fold, resting }: SurveyOptions = {},
  ) {
    this.#paths = paths;
    this.#resting = resting;
    this.#foldRule = fold;
    this.#erasure = erasure;
    this.#trusted = trusted;
  }

  /** Reads all packs, then follows references from the roots. */
  async run(store: Pick<BlobStore, "get">): Promise<void> {
    const block = new ScanBlock();
    this.#heads = await HeadCheck.begin(this.#paths);
    for (const { name, atRest: isFree } of packsAtRest(this.#paths)) {
      const atRest = isFree && this.#resting?.has(name.id) !== false;
      const pack = { name, atRest, damaged: false };
      this.packs.push(pack);
      await this.#readPack(pack, block);
    }
    // Rewriting a pack that a head contradicts would hide the change permanently.
    for (const finding of await this.#heads.findings())
      if (!this.#isTrusted(finding)) this.#noteLoss(this.#packAt(finding.file), finding);
    for (const { pack, finding } of this.#struck)
      if (!this.isMadeGood(finding)) this.#noteLoss(pack, finding);
    await this.#planFold(store);
    await this.#follow(store, this.#roots);
    await this.#followErased(store);
    await this.#follow(store, this.#living);
  }

  /** True if the copy in this pack is kept. Only for packs at rest. */
  keeps(digest: Digest, pack: SurveyedPack): boolean {
    if (!this.isReachable(digest)) return false;
    const holder = this.packs[this.#copies.get(digest)!.file >> 1]!;
    return holder === pack || holder.damaged;
  }

  /** Blobs of a pack, read from its headers. */
  blobsOf(pack: SurveyedPack): { digest: Digest; kind: string; bytes: number }[] {
    const files = new PackFiles(this.#paths);
    const blobs: { digest: Digest; kind: string; bytes: number }[] = [];
    files.walk(pack.name.id, 0, (entry) => {
      if (entry.kind === PACK_LARGE_KIND)
        blobs.push(parseLargeEntry(files.read(pack.name.id, entry, entry.digest)!.bytes)!);
      else if (entry.kind !== PACK_HEADER_KIND && entry.kind !== PACK_FOOTER_KIND) blobs.push(entry);
    });
    files.close();
    return blobs;
  }

  /** True if an intact copy of the damaged bytes exists: put again after the damage, or from before. */
  isMadeGood({ code, expected }: Finding): boolean {
    if (code !== "digest-mismatch" || !isDigest(expected)) return false;
    return this.#copies.has(expected) && !this.#spoilt.has(expected);
  }

  /** True if the book has signed heads, which name its packs. */
  get hasHeads(): boolean {
    return this.#heads?.isEmpty === false;
  }

  /** Heads to fold, if there are enough. */
  get fold(): HeadFold | undefined {
    return this.#fold;
  }

  /** Lists of earlier folds that are folded again. */
  get foldedBefore(): readonly Uint8Array[] {
    return this.#foldedBefore;
  }

  /** Reason why a copy is removed. */
  fateOf(digest: Digest): "headsFolded" | "copiesRemoved" | "blobsRemoved" {
    if (this.#isFolded(digest)) return "headsFolded";
    return this.isReachable(digest) ? "copiesRemoved" : "blobsRemoved";
  }

  isReachable(digest: Digest): boolean {
    if (this.#doomed.has(digest) || this.#isFolded(digest)) return false;
    return this.#keepsAll || this.#reachable.has(digest);
  }

  /** All digests that are removed because of the erased records, including the records. */
  get doomed(): ReadonlySet<Digest> {
    return this.#doomed;
  }

  /** Packs that hold digests of `doomed` and cannot be rewritten, because their writer is alive. */
  busyPacks(): string[] {
    const busy = this.packs.filter(
      (pack) => !pack.atRest && this.blobsOf(pack).some(({ digest }) => this.#doomed.has(digest)),
    );
    return busy.map(({ name }) => name.id);
  }

  /** Kinds in the book that this version does not know, sorted. */
  get unknownKinds(): string[] {
    return [...this.#unknownKinds].sort();
  }

  /** True if an unknown blob cannot be searched for digests: then every blob counts as reachable. */
  get keepsAll(): boolean {
    return this.#keepsAll;
  }

  #isFolded(digest: Digest): boolean {
    return this.#fold?.heads.has(digest) === true;
  }

  /** Plans a fold only for an undamaged book: a fold asserts that the heads it replaces were correct. */
  async #planFold(store: Pick<BlobStore, "get">): Promise<void> {
    if (this.#foldRule === undefined || this.findings.length > 0) return;
    const isRemovable = (head: Digest) => {
      const copy = this.#copies.get(head);
      return copy !== undefined && this.packs[copy.file >> 1]!.atRest;
    };
    this.#fold = planFold(this.#heads!.signed(), { ...this.#foldRule, isRemovable });
    for (const list of this.#fold?.lists ?? []) {
      const blob = await store.get(list);
      // Without the list its heads could no longer be proved. A scan reports the missing list.
      if (blob === undefined) this.#fold = undefined;
      else this.#foldedBefore.push(blob.bytes);
    }
  }

  async #readPack(pack: SurveyedPack, block: ScanBlock): Promise<void> {
    const scan = await PackScan.open(this.#paths, pack.name, { block, watch: this.#heads });
    if (scan === undefined) return;
    try {
      for (let item = scan.next(); item !== undefined; item = scan.next()) {
        if (item === "more") await scan.more();
        else await this.#note(pack, item);
      }
    } finally {
      await scan.close();
    }
  }

  async #note(pack: SurveyedPack, item: PackItem): Promise<void> {
    if (item.type === "damage") this.#struck.push({ pack, finding: item.finding });
    else if (item.type === "blob") {
      if (this.#unread.has(item.digest)) await this.#readHolder(item.digest);
      this.#noteBlob(pack, item);
    } else if (item.type === "stand-in") await this.#noteLarge(pack, item.entry);
  }

  /** Scans check every blob except large files. A large file is read if there are several copies: only an intact copy
   *  may be kept. */
  async #noteLarge(pack: SurveyedPack, entry: LargeEntry): Promise<void> {
    const finding = missingLarge(this.#paths, pack.name.id, entry);
    if (finding !== undefined) this.#noteLoss(pack, finding);
    await this.#readHolder(entry.digest);
    const isFirst = !this.#copies.has(entry.digest);
    if (isFirst) this.#unread.set(entry.digest, { pack, entry });
    this.#noteBlob(pack, entry, isFirst || (await this.#isWhole(pack, entry)));
  }

  async #readHolder(digest: Digest): Promise<void> {
    const holder = this.#unread.get(digest);
    this.#unread.delete(digest);
    if (holder !== undefined && !(await this.#isWhole(holder.pack, holder.entry))) this.#spoilt.add(digest);
  }

  async #isWhole(pack: SurveyedPack, entry: LargeEntry): Promise<boolean> {
    const finding = await largeFault(this.#paths, pack.name.id, entry);
    if (finding !== undefined) this.#struck.push({ pack, finding });
    return finding === undefined;
  }

  #noteBlob(
    pack: SurveyedPack,
    { digest, kind }: { digest: Digest; kind: string },
    isWhole: boolean = true,
  ): void {
    const unknown = isUnknownKind(kind);
    if (unknown) this.#unknownKinds.add(kind);
    const refers = unknown || isRecordKind(kind);
    const known = this.#copies.get(digest);
    // Keep the first intact copy at rest; a copy in a living writer's pack may not be durable yet.
    const isBetter =
      known === undefined ||
      this.#spoilt.has(digest) ||
      (pack.atRest && !this.packs[known.file >> 1]!.atRest);
    if (isWhole && isBetter) {
      this.#spoilt.delete(digest);
      const file = (this.packs.length - 1) * 2 + (refers ? 1 : 0);
      this.#copies.set(digest, { file, offset: 0, bytes: 0, large: false });
    }
    const { records, unlessNeeded } = this.#erasure;
    if (isRootKind(kind) && !records.has(digest) && !unlessNeeded.has(digest)) this.#roots.push(digest);
    else if (!pack.atRest) this.#living.push(digest);
  }

  #isTrusted({ code, actual }: Finding): boolean {
    return code === "foreign-replacement" && actual !== undefined && this.#trusted.has(actual);
  }

  #packAt(file: string): SurveyedPack | undefined {
    return this.packs.find(({ name }) => file.startsWith(`packs/${name.id}.`));
  }

  #noteLoss(pack: SurveyedPack | undefined, finding: Finding): void {
    if (pack !== undefined) pack.damaged = true;
    this.findings.push(finding);
  }

  async #follow(store: Pick<BlobStore, "get">, roots: readonly Digest[]): Promise<void> {
    const ahead: Digest[] = [];
    const reach = (digest: Digest) => {
      if (this.#reachable.has(digest) || this.#erasure.records.has(digest) || this.#doomed.has(digest))
        return;
      if (this.#isFolded(digest)) return;
      this.#reachable.set(digest, { file: 0, offset: 0, bytes: 0, large: false });
      const copy = this.#copies.get(digest);
      if (copy !== undefined && copy.file % 2 === 1) ahead.push(digest);
    };
    for (const root of roots) {
      reach(root);
      for (let digest = ahead.pop(); digest !== undefined; digest = ahead.pop())
        for (const target of await this.#neededBy(digest, store)) reach(target);
    }
  }

  /** Finds the erased records in the book, and the blobs that they reach and no remaining root does. */
  async #followErased(store: Pick<BlobStore, "get">): Promise<void> {
    const ahead = [...this.#erasure.records, ...this.#erasure.unlessNeeded];
    for (let digest = ahead.pop(); digest !== undefined; digest = ahead.pop()) {
      const copy = this.#copies.get(digest);
      if (copy === undefined || this.#reachable.has(digest) || this.#doomed.has(digest)) continue;
      this.#doomed.add(digest);
      if (copy.file % 2 === 1) ahead.push(...(await this.#neededBy(digest, store)));
    }
  }

  /** Tests for a record, because a signature keeps only the records it names. Media and checkpoints live as long as a
   *  record refers to them. */
  #isRecord(digest: Digest): boolean {
    const copy = this.#copies.get(digest);
    return copy !== undefined && copy.file % 2 === 1;
  }

  async #neededBy(digest: Digest, store: Pick<BlobStore, "get">): Promise<Digest[]> {
    try {
      const blob = await store.get(digest);
      if (blob === undefined) return [];
      if (!isUnknownKind(blob.kind)) {
        const { unlessNeeded, despite } = this.#erasure;
        const targets = keptBy(blob.kind, blob.bytes);
        if (blob.kind === Attestation.kind)
          return targets.filter((target) => this.#isRecord(target) && !unlessNeeded.has(target));
        return despite.has(digest) ? targets.filter((target) => !unlessNeeded.has(target)) : targets;
      }
      const found = digestsInUnknown(blob.bytes);
      if (found === undefined) this.#keepsAll = true;
      return found ?? [];
    } catch (error) {
      const message = `what ${digest} refers to cannot be read: ${reasonOf(error)}`;
      const pack = this.packs[this.#copies.get(digest)!.file >> 1]!;
      const file = `packs/${pack.name.id}`;
      this.#noteLoss(pack, { code: "bad-record", file, offset: 0, length: 0, message, expected: digest });
      return [];
    }
  }
}

/** All packs; `atRest` is false if a living writer may still rely on the pack. */
function packsAtRest(paths: BookPaths): { name: PackName; atRest: boolean }[] {
  // A session's lock exists from before its first pack until its last pack is sealed. So a pack that was listed before,
  // and whose lock is not listed after, belongs to no living writer. By then it has its sealed name.
  const before = new Set(listPacks(paths).map(({ id }) => id));
  const locked = new Set(readdirSync(paths.locks).map(parseLockName));
  return listPacks(paths).map((name) => {
    const atRest = name.sealed && before.has(name.id) && !locked.has(name.session);
    return { name, atRest };
  });
}

function missingLarge(paths: BookPaths, pack: string, entry: LargeEntry): Finding | undefined {
  const file = largePath(pack, entry);
  const at = { file, offset: 0, length: entry.bytes, expected: entry.digest };
  try {
    if (statSync(join(paths.root, file)).size === entry.bytes) return undefined;
    return { ...at, code: "truncated", message: "the file has another length than its pack says" };
  } catch (error) {
    if (!isMissing(error)) throw error;
    return { ...at, code: "missing-large", message: `the pack names ${entry.digest}, the file is missing` };
  }
}
