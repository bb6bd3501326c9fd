/** Caches a replay store of a bucket on this machine: complete segments, and one view for each running operation. A
 *  segment is a folder named by the digest of its manifest entry; it never changes. A view is a directory of hard links
 *  to the files of segments, or of copies if the file system has no links. Views can therefore still read a segment
 *  that was removed from the cache. Does not access buckets. */
import { randomUUID } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, statSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { digestJson, type Json } from "../../base/index.ts";
import type { ReplaySegment } from "../../contract/index.ts";
import { linkOrCopy, makeDirectory, tryLock, withLock } from "../../store/index.ts";

/** Maximum wait for a lock: another process of this machine may be downloading or writing a large store. */
const LOCK_MS = 3_600_000;

/** File of a segment; its path is relative to the segment. */
export interface SegmentFile {
  readonly path: string;
  readonly bytes: number;
}

export class SegmentCache {
  readonly #root: string;

  constructor(root: string) {
    this.#root = resolve(root);
    for (const folder of [this.#segments, this.#views]) makeDirectory(folder);
  }

  /** Runs `work` while no other process of this machine changes the segments. The lock is short: views do not hold
   *  it. */
  alone<T>(work: () => Promise<T>): Promise<T> {
    return withLock(join(this.#root, "segments.lock"), work, LOCK_MS);
  }

  /** Runs `work` while no other process of this machine writes to the store. Readers do not wait for this lock. */
  asWriter<T>(work: () => Promise<T>): Promise<T> {
    return withLock(join(this.#root, "writer.lock"), work, LOCK_MS);
  }

  /** Runs `work` with a path that does not exist yet; the path is removed afterwards. */
  async withView<T>(work: (root: string) => Promise<T>): Promise<T> {
    this.#removeDeadViews();
    const view = join(this.#views, randomUUID());
    // The lock is taken before the directory exists: a view with a free lock belongs to a dead process.
    return withLock(`${view}.lock`, async () => {
      makeDirectory(view);
      try {
        return await work(join(view, "store"));
      } finally {
        rmSync(view, { recursive: true, force: true });
      }
    }).finally(() => rmSync(`${view}.lock`, { force: true }));
  }

  /** A copy cut short by a power loss is downloaded again. Damage inside a file is found by its digest. */
  holds(segment: ReplaySegment, files: readonly SegmentFile[]): boolean {
    const folder = this.#folderOf(segment);
    return files.every(
      ({ path, bytes }) => statSync(join(folder, path), { throwIfNoEntry: false })?.size === bytes,
    );
  }

  /** Adds a segment that `fill` writes to a folder; it appears completely or not at all. */
  async add(segment: ReplaySegment, fill: (folder: string) => Promise<void>): Promise<void> {
    const folder = this.#folderOf(segment);
    const partial = `${folder}.partial`;
    rmSync(partial, { recursive: true, force: true });
    makeDirectory(partial);
    await fill(partial);
    rmSync(folder, { recursive: true, force: true });
    renameSync(partial, folder);
  }

  /** Links the files of a segment into a folder of a view. */
  link(segment: ReplaySegment, files: readonly SegmentFile[], to: string): void {
    linkFiles(
      files.map(({ path }) => path),
      { from: this.#folderOf(segment), to },
    );
  }

  /** Removes every other segment, and unfinished files of dead processes. */
  keepOnly(segments: readonly ReplaySegment[]): void {
    const kept = new Set(segments.map((segment) => this.#folderOf(segment)));
    for (const name of readdirSync(this.#segments)) {
      const folder = join(this.#segments, name);
      if (!kept.has(folder)) rmSync(folder, { recursive: true, force: true });
    }
  }

  get #segments(): string {
    return join(this.#root, "segments");
  }

  get #views(): string {
    return join(this.#root, "views");
  }

  #folderOf(segment: ReplaySegment): string {
    const digest = digestJson("rollbook.replay-copy.v1", segment as unknown as Json);
    return join(this.#segments, digest.replace(":", "-"));
  }

  #removeDeadViews(): void {
    for (const entry of readdirSync(this.#views, { withFileTypes: true })) {
      const view = join(this.#views, entry.name);
      const lock = entry.isDirectory() && existsSync(view) ? tryLock(`${view}.lock`) : undefined;
      if (lock === undefined) continue;
      rmSync(view, { recursive: true, force: true });
      lock.release();
      rmSync(`${view}.lock`, { force: true });
    }
  }
}

export function linkFiles(paths: readonly string[], { from, to }: { from: string; to: string }): void {
  makeParents(paths, to);
  for (const path of paths) {
    const target = join(to, path);
    linkOrCopy(join(from, path), target, { temp: `${target}.copy`, flush: false });
  }
}

export function makeParents(paths: readonly string[], below: string): void {
  for (const folder of new Set(paths.map((path) => dirname(join(below, path)))))
    mkdirSync(folder, { recursive: true });
}
