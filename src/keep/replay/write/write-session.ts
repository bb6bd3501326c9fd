/** One write or append call: reads rollouts and fills segments, starting a new one when a segment is full.
 *  In: digests of sealed rollouts. Out: segments on disk that no manifest lists yet. Does not commit. */
import { existsSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { type Clock, type Digest, digestToBytes } from "../../../base/index.ts";
import {
  type ReadBlob,
  type ReplayManifest,
  type ReplaySegment,
  type ReplayWriter,
  type RolloutContent,
  readTokenColumns,
  type StepStream,
  Task,
} from "../../../contract/index.ts";
import { makeDirectory, readRecord, syncDirectory } from "../../../store/index.ts";
import { contentReader, recordReader } from "../../admit/index.ts";
import { ChainSet, closeSegments, openSegments, ReasonNames, SEGMENTS } from "../tables/index.ts";
import { addChain } from "./chain-rows.ts";
import { type LateFeedback, labelChain } from "./late-labels.ts";
import { SegmentWriter } from "./segment-writer.ts";
import type { Layout } from "./table-writer.ts";

export interface AppendOptions {
  readonly root: string;
  readonly read: ReadBlob;
  /** Digests of rollout contents. A content that the store already has is skipped. */
  readonly rollouts: Iterable<Digest> | AsyncIterable<Digest>;
  readonly clock: Clock;
  /** Filter: only streams for which this returns true are written. */
  readonly admits?: (content: Digest, stream: number) => boolean;
  /** Late outcomes that replace missing rewards. */
  readonly feedback?: LateFeedback;
  readonly layout?: Layout;
  readonly limits?: Partial<SegmentLimits>;
  /** Last head of the book that the rollouts are read from. */
  readonly head?: Digest;
  /** Identity of the writer, for the manifest. */
  readonly writer?: Partial<ReplayWriter>;
  /** False skips fsync: for stores that need not survive a crash of the machine. */
  readonly durable?: boolean;
  readonly onProgress?: (progress: WriteProgress) => void;
}

export interface WriteProgress {
  readonly rollouts: number;
  readonly chains: number;
}

/** When one of these limits is reached, the segment is closed and the next one begins. */
interface SegmentLimits {
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

export class WriteSession {
  rollouts = 0;
  chains = 0;
  skipped = 0;
  /** Chains whose returns are NaN: the store has `root-gain`, and a step has no errors. */
  withoutErrors = 0;
  readonly segments: ReplaySegment[] = [];
  readonly reasons: ReasonNames;
  readonly #options: AppendOptions;
  readonly #manifest: ReplayManifest;
  readonly #known = new ChainSet();
  readonly #directories: string[] = [];
  #current: SegmentWriter | undefined;

  constructor(options: AppendOptions, manifest: ReplayManifest) {
    this.#options = options;
    this.#manifest = manifest;
    this.reasons = new ReasonNames(manifest.reasons);
  }

  /** Reads the chains that the store already has. */
  async learn(): Promise<void> {
    const opened = await openSegments(this.#options.root, this.#manifest);
    for (const { reader } of opened) {
      for await (const { columns } of reader.blocks("chains", ["content", "stream"]))
        for (let i = 0; i < columns.stream.length; i++)
          this.#known.add(columns.content, columns.stream[i]!, i * 32);
    }
    closeSegments(opened);
  }

  async writeAll(): Promise<void> {
    const { read, rollouts, onProgress } = this.#options;
    const readContent = contentReader(recordReader(read));
    for await (const digest of rollouts) {
      await this.#addRollout(digest, await readContent(digest));
      this.rollouts++;
      onProgress?.({ rollouts: this.rollouts, chains: this.chains });
    }
    await this.#closeCurrent();
  }

  /** Removes the segments that a failed call has written. */
  abandon(): void {
    for (const directory of this.#directories) rmSync(directory, { recursive: true, force: true });
  }

  async #addRollout(digest: Digest, content: RolloutContent) {
    const { read, admits, feedback } = this.#options;
    const taskDigest = content.task.digest;
    let task: Task | undefined;
    for (const [streamIndex, stream] of content.streams.entries()) {
      if (admits !== undefined && !admits(digest, streamIndex)) continue;
      if (!this.#known.add(digestToBytes(digest), streamIndex)) {
        this.skipped++;
        continue;
      }
      if (taskDigest !== undefined) task ??= await readRecord(read, Task, taskDigest);
      const columns = stream.level === "token" ? await readTokenColumns(read, stream) : undefined;
      const chain = labelChain({ digest, content, task, streamIndex, columns }, feedback);
      await addChain(this.#segment(), chain);
      this.chains++;
      if (this.#manifest.returns.semantics === "root-gain" && stream.level === "step" && !isMeasured(stream))
        this.withoutErrors++;
      if (this.#isFull()) await this.#closeCurrent();
    }
  }

  #segment(): SegmentWriter {
    if (this.#current !== undefined) return this.#current;
    const { root, clock, layout = {}, writer, durable = true } = this.#options;
    const path = `${SEGMENTS}/${nextSegment(root)}`;
    const directory = join(root, path);
    makeDirectory(directory);
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
    const { head } = this.#options;
    const segment = await this.#current.close();
    this.segments.push(head === undefined ? segment : { ...segment, heads: [head] });
    this.#current = undefined;
    if (this.#options.durable ?? true) {
      syncDirectory(join(this.#options.root, SEGMENTS));
      syncDirectory(this.#options.root);
    }
  }
}

/** True if every step measured its errors. */
export function isMeasured({ steps }: Pick<StepStream, "steps">): boolean {
  return steps.every(({ before, after }) => before !== undefined && after !== undefined);
}

export function writerOf(writer: Partial<ReplayWriter> = {}): ReplayWriter {
  return { program: "rollbook", versions: { node: process.versions.node }, invocation: [], ...writer };
}

/** A segment name that no directory has, including orphans. */
function nextSegment(root: string): string {
  const folder = join(root, SEGMENTS);
  const names = existsSync(folder) ? readdirSync(folder) : [];
  const numbers = names.map((name) => Number(/^s(\d+)$/.exec(name)?.[1] ?? 0));
  return `s${String(numbers.reduce((a, b) => Math.max(a, b), 0) + 1).padStart(6, "0")}`;
}
