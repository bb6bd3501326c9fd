/** Writes rollouts into a replay store: a new one, or segments appended to one.
 *  In: digests of sealed rollouts and a way to read blobs. Out: segments on disk, then the manifest that makes them
 *  part of the store. A reader sees the store before or after, never between; a writer that dies leaves orphans that
 *  readers ignore. Memory is bounded by a segment's texts and a few chunks per column. */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import type { Clock } from "../../base/clock.ts";
import { type Digest, digestToBytes } from "../../base/digest.ts";
import { RollbookError } from "../../base/errors.ts";
import type { ReplayManifest, ReplaySegment, ReplayWriter } from "../../contract/replay-manifest.ts";
import { type ReadBlob, readTokenColumns } from "../../contract/rollout-exchange.ts";
import { Task } from "../../contract/task.ts";
import { syncDirectory } from "../../store/files.ts";
import { withLock } from "../../store/locks.ts";
import { contentReader, readRecord } from "../batch/sources.ts";
import { addChain } from "./chain-rows.ts";
import { KeyMap, pairKey } from "./key-map.ts";
import {
  commitManifest,
  commitRoot,
  hasManifest,
  LOCK_FILE,
  ROOT_FILE,
  readManifest,
  removeTemporaries,
  SEGMENTS,
  sealReplayManifest,
  segmentedRoot,
} from "./manifest.ts";
import { closeSegments, openSegments } from "./open-segment.ts";
import { ReasonNames } from "./reason-names.ts";
import { readCurrentManifest } from "./replay-store.ts";
import { DEFAULT_RETURNS, type Returns } from "./return-semantics.ts";
import { SegmentWriter } from "./segment-writer.ts";
import type { Layout } from "./table-writer.ts";

export interface AppendOptions {
  readonly root: string;
  readonly read: ReadBlob;
  /** Digests of rollout contents. One that the store has already is skipped. */
  readonly rollouts: Iterable<Digest> | AsyncIterable<Digest>;
  readonly clock: Clock;
  /** Only streams of these families. */
  readonly families?: readonly string[];
  readonly layout?: Layout;
  readonly limits?: Partial<SegmentLimits>;
  /** Who writes, for the manifest. */
  readonly writer?: Partial<ReplayWriter>;
  /** False skips fsync: for stores that need not survive a crash of the machine. */
  readonly durable?: boolean;
  readonly onProgress?: (progress: WriteProgress) => void;
}

export interface WriteOptions extends AppendOptions {
  readonly returns?: Partial<Returns>;
}

export interface WriteProgress {
  readonly rollouts: number;
  readonly chains: number;
}

export interface WriteResult extends WriteProgress {
  /** Chains that the store had already. */
  readonly skipped: number;
  readonly manifest: ReplayManifest;
}

/** A segment is closed, and the next begun, when one of these is reached. */
export interface SegmentLimits {
  readonly candidates: number;
  readonly tokens: number;
  readonly texts: number;
  readonly sources: number;
}

const LIMITS: SegmentLimits = {
  candidates: 16_000_000,
  tokens: 256_000_000,
  texts: 1_000_000,
  sources: 1_000_000,
};

/** Makes a new segmented store. */
export async function writeReplay(options: WriteOptions): Promise<WriteResult> {
  const root = resolve(options.root);
  makeRoot(root);
  return withLock(join(root, LOCK_FILE), async () => {
    if (hasManifest(root))
      throw new RollbookError(
        "replay-exists",
        { root },
        `${root} is a replay store already. Append to it, or name another directory.`,
      );
    refuseForeign(root);
    const returns = checkReturns({ ...DEFAULT_RETURNS, ...options.returns });
    const empty = sealReplayManifest({
      layout: "segmented",
      generation: 0,
      returns,
      reasons: [],
      segments: [],
    });
    const result = await extend({ ...options, root }, empty);
    if (result.manifest.generation > 0) return result;
    throw new RollbookError(
      "no-rollouts",
      { root, rollouts: result.rollouts },
      `none of ${result.rollouts} rollouts has a stream to write. Name rollouts, or check the families.`,
    );
  });
}

/** Adds segments to a store. Without anything new the store stays as it is. */
export async function appendReplay(options: AppendOptions): Promise<WriteResult> {
  const root = resolve(options.root);
  readManifest(root);
  return withLock(join(root, LOCK_FILE), async () => {
    const manifest = readCurrentManifest(root);
    if (manifest.layout === "segmented") return extend({ ...options, root }, manifest);
    throw new RollbookError(
      "replay-is-plain",
      { root },
      `${root} is compacted: one plain Zarr tree takes no segments. Append to the segmented store it was made from, and compact again.`,
    );
  });
}

async function extend(options: AppendOptions, manifest: ReplayManifest): Promise<WriteResult> {
  const { root } = options;
  removeTemporaries(root);
  // Brings the root up to date if a writer died right after its commit.
  if (!isRoot(root, manifest.generation)) commitRoot(root, manifest.generation);
  const session = new Session(options, manifest);
  try {
    await session.learn();
    await session.writeAll();
  } catch (error) {
    session.abandon();
    throw error;
  }
  const { segments, reasons, ...counts } = session;
  if (segments.length === 0) return { ...counts, manifest };
  const next = sealReplayManifest({
    layout: "segmented",
    generation: manifest.generation + 1,
    returns: manifest.returns,
    reasons: reasons.names as ReplayManifest["reasons"],
    segments: [...manifest.segments, ...segments],
  });
  commitManifest(root, next);
  commitRoot(root, next.generation);
  return { ...counts, manifest: next };
}

/** One call of write or append: the segments it makes. */
class Session {
  rollouts = 0;
  chains = 0;
  skipped = 0;
  readonly segments: ReplaySegment[] = [];
  readonly reasons: ReasonNames;
  readonly #options: AppendOptions;
  readonly #manifest: ReplayManifest;
  readonly #known = new KeyMap();
  readonly #directories: string[] = [];
  #current: SegmentWriter | undefined;

  constructor(options: AppendOptions, manifest: ReplayManifest) {
    this.#options = options;
    this.#manifest = manifest;
    this.reasons = new ReasonNames(manifest.reasons);
  }

  /** Which chains the store has. */
  async learn(): Promise<void> {
    const opened = await openSegments(this.#options.root, this.#manifest);
    for (const { reader } of opened) {
      const { content, stream } = await reader.read("chains", ["content", "stream"]);
      for (let i = 0; i < stream.length; i++)
        this.#known.getOrSet(pairKey(content, stream[i]!, i * 32), this.#known.size);
    }
    closeSegments(opened);
  }

  async writeAll(): Promise<void> {
    const { read, rollouts, onProgress } = this.#options;
    const readContent = contentReader(read);
    for await (const digest of rollouts) {
      await this.#addRollout(digest, await readContent(digest));
      this.rollouts++;
      onProgress?.({ rollouts: this.rollouts, chains: this.chains });
    }
    await this.#closeCurrent();
  }

  /** Removes what a failed call has written. */
  abandon(): void {
    for (const directory of this.#directories) rmSync(directory, { recursive: true, force: true });
  }

  async #addRollout(digest: Digest, content: Awaited<ReturnType<ReturnType<typeof contentReader>>>) {
    const { read, families } = this.#options;
    const taskDigest = content.task.digest;
    let task: Task | undefined;
    for (const [streamIndex, stream] of content.streams.entries()) {
      if (families !== undefined && !families.includes(stream.family)) continue;
      const known = this.#known.getOrSet(pairKey(digestToBytes(digest), streamIndex), this.#known.size);
      if (known !== undefined) {
        this.skipped++;
        continue;
      }
      if (taskDigest !== undefined) task ??= await readRecord(read, Task, taskDigest);
      const columns = stream.level === "token" ? await readTokenColumns(read, stream) : undefined;
      await addChain(this.#segment(), { digest, content, task, streamIndex, columns });
      this.chains++;
      if (this.#isFull()) await this.#closeCurrent();
    }
  }

  #segment(): SegmentWriter {
    if (this.#current !== undefined) return this.#current;
    const { root, clock, layout = {}, writer, durable = true } = this.#options;
    const path = `${SEGMENTS}/${nextSegment(root)}`;
    const directory = join(root, path);
    mkdirSync(directory, { recursive: true });
    this.#directories.push(directory);
    this.#current = new SegmentWriter({
      directory,
      path,
      returns: this.#manifest.returns,
      layout,
      reasons: this.reasons,
      writer: writerOf(writer),
      createdAtMs: clock.nowMs(),
      durable,
    });
    return this.#current;
  }

  #isFull(): boolean {
    const limits = { ...LIMITS, ...this.#options.limits };
    const { tables, texts } = this.#current!;
    return (
      tables.candidates.rows >= limits.candidates ||
      tables.tokens.rows >= limits.tokens ||
      texts.size >= limits.texts ||
      tables.sources.rows >= limits.sources
    );
  }

  async #closeCurrent(): Promise<void> {
    if (this.#current === undefined) return;
    this.segments.push(await this.#current.close());
    this.#current = undefined;
    if (this.#options.durable ?? true) {
      syncDirectory(join(this.#options.root, SEGMENTS));
      syncDirectory(this.#options.root);
    }
  }
}

export function writerOf(writer: Partial<ReplayWriter> = {}): ReplayWriter {
  return { program: "rollbook", versions: { node: process.versions.node }, invocation: [], ...writer };
}

/** A name that no directory has, not even an orphan's. */
function nextSegment(root: string): string {
  const folder = join(root, SEGMENTS);
  const names = existsSync(folder) ? readdirSync(folder) : [];
  const numbers = names.map((name) => Number(/^s(\d+)$/.exec(name)?.[1] ?? 0));
  return `s${String(numbers.reduce((a, b) => Math.max(a, b), 0) + 1).padStart(6, "0")}`;
}

function makeRoot(root: string): void {
  if (existsSync(root)) return;
  mkdirSync(root, { recursive: true });
  syncDirectory(dirname(root));
}

/** What a writer that died before its first commit may have left. */
function refuseForeign(root: string): void {
  const ours = /^(?:segments|writer\.lock.*|zarr\.json(?:\.tmp)?|manifest\.json\.tmp)$/;
  const foreign = readdirSync(root).filter((name) => !ours.test(name));
  if (foreign.length === 0) return;
  throw new RollbookError(
    "not-empty",
    { root, foreign },
    `${root} holds other things (${foreign.slice(0, 3).join(", ")}). Name a new or empty directory.`,
  );
}

function isRoot(root: string, generation: number): boolean {
  const path = join(root, ROOT_FILE);
  return existsSync(path) && Buffer.compare(readFileSync(path), segmentedRoot(generation)) === 0;
}

function checkReturns(returns: Returns): Returns {
  const { gamma, epsilon } = returns;
  if (gamma >= 0 && gamma <= 1 && epsilon > 0 && Number.isFinite(epsilon)) return returns;
  throw new RollbookError(
    "bad-returns",
    { gamma, epsilon },
    `gamma ${gamma} must lie in 0 … 1 and epsilon ${epsilon} above 0.`,
  );
}
