/** Opens a replay store in a bucket. Every operation has a view of the store on this machine: a directory that is a
 *  store itself. Down: the manifest, and the segments that it lists, each checked against its digests. Up: the objects
 *  of new segments, each put once; then the manifest, put only if the bucket still has the downloaded version; then the
 *  root. A reader of the bucket sees the store either before or after a write. Of two concurrent writers one is
 *  refused, and no manifest lists its objects. */
import { randomUUID } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { isRollbookError, RollbookError } from "../../base/index.ts";
import type { ReplayManifest, ReplaySegment } from "../../contract/index.ts";
import {
  commitRoot,
  digestStoredArray,
  eachInFlight,
  MANIFEST_FILE,
  ROOT_FILE,
  readManifest,
  rootGeneration,
  SEGMENTS,
} from "../../keep/replay/index.ts";
import {
  type Bucket,
  isBucketUrl,
  makeDirectory,
  openS3Bucket,
  requireConditions,
  writeAtomically,
} from "../../store/index.ts";
import { copyOf } from "../open/index.ts";
import { linkFiles, makeParents, SegmentCache, type SegmentFile } from "./segment-cache.ts";

/** `read`: nothing is uploaded. `write`: additions of `work` to the store are uploaded when it is done. `create`: like
 *  `write`, and the prefix must be empty. */
type ReplayUse = "read" | "write" | "create";

/** Number of objects in transfer at the same time. */
const AT_ONCE = 8;
/** Prefix of objects that a writer puts and removes to test if the server honours conditional requests. */
const PROBE = "probe-";

/** Runs `work` on a store: on its directory, or on a view of the store at s3://bucket/prefix. */
export async function withReplay<T>(
  store: string,
  use: ReplayUse,
  work: (root: string) => Promise<T>,
): Promise<T> {
  if (!isBucketUrl(store)) return work(store);
  const bucket = await openS3Bucket(store);
  const cache = new SegmentCache(join(copyOf(store), "replay"));
  const inView = () =>
    cache.withView(async (root) => {
      const view = new ReplayView({ bucket, cache, root });
      try {
        const version = await cache.alone(() => view.pull(use));
        const result = await work(root);
        if (use !== "read") await view.push(version);
        return result;
      } catch (error) {
        throw isRollbookError(error) ? renamed(error, { from: root, to: store }) : error;
      }
    });
  return use === "read" ? inView() : cache.asWriter(inView);
}

class ReplayView {
  readonly #bucket: Bucket;
  readonly #cache: SegmentCache;
  readonly #root: string;
  /** Paths of the segments that the bucket holds. */
  readonly #there = new Set<string>();

  constructor({ bucket, cache, root }: { bucket: Bucket; cache: SegmentCache; root: string }) {
    this.#bucket = bucket;
    this.#cache = cache;
    this.#root = root;
  }

  /** Returns the version of the manifest; undefined if there is none. */
  async pull(use: ReplayUse): Promise<string | undefined> {
    // The root is read first. A commit puts the manifest before the root, so a root newer than the manifest is a fault.
    const root = await this.#bucket.get(ROOT_FILE);
    const manifest = await this.#bucket.getVersion(MANIFEST_FILE);
    if (manifest === undefined) {
      if (use !== "read") await this.#requireRoom(use);
      return undefined;
    }
    if (use === "create") throw this.#exists();
    makeDirectory(join(this.#root, SEGMENTS));
    const path = join(this.#root, MANIFEST_FILE);
    writeAtomically(path, manifest.bytes, `${path}.tmp`);
    const { segments, layout, generation } = readManifest(this.#root);
    // Crashed writers can leave the root of the bucket many commits behind the manifest. A root newer than the manifest
    // means that an old manifest was restored. A reader that opens the view then refuses it.
    const newest = Math.max(generation, (root && rootGeneration(root)) ?? 0);
    if (layout === "segmented") commitRoot(this.#root, newest);
    await this.#bringDown(segments);
    return manifest.version;
  }

  async push(version: string | undefined): Promise<void> {
    const manifest = readManifest(this.#root);
    const added = manifest.segments.filter(({ path }) => !this.#there.has(path));
    if (added.length === 0) return;
    await requireConditions(this.#bucket, `${PROBE}${randomUUID()}`);
    for (const { path } of added) await this.#upload(path);
    const bytes = readFileSync(join(this.#root, MANIFEST_FILE));
    if (!(await this.#bucket.putIf(MANIFEST_FILE, bytes, version))) await this.#requireOwn(MANIFEST_FILE);
    if (manifest.layout === "segmented")
      await putRoot(this.#bucket, { manifest: bytes, root: readFileSync(join(this.#root, ROOT_FILE)) });
    await this.#cache.alone(async () => {
      for (const segment of added) await this.#keep(segment);
    });
  }

  async #bringDown(segments: ReplayManifest["segments"]): Promise<void> {
    this.#cache.keepOnly(segments);
    const files = await this.#filesOf(segments);
    for (const segment of segments) {
      const own = files.get(segment.path)!;
      if (!this.#cache.holds(segment, own)) await this.#fetch(segment, own);
      this.#cache.link(segment, own, join(this.#root, segment.path));
      this.#there.add(segment.path);
    }
  }

  /** Adds a new segment to the cache, so that the next command on this machine need not download it. */
  #keep(segment: ReplaySegment): Promise<void> {
    const from = join(this.#root, segment.path);
    return this.#cache.add(segment, async (to) => linkFiles(this.#ownFiles(segment.path), { from, to }));
  }

  /** Uploads every object of a segment; none may exist. The first object decides which of two writers owns the
   *  segment's name. */
  async #upload(path: string): Promise<void> {
    const put = async (file: string) => {
      const key = keyOf(path, file);
      if (!(await this.#bucket.putNewFile(key, join(this.#root, key)))) await this.#requireOwn(key);
    };
    const [first, ...rest] = this.#ownFiles(path);
    if (first !== undefined) await put(first);
    await eachInFlight(rest.length, AT_ONCE, (i) => put(rest[i]!));
  }

  #ownFiles(path: string): string[] {
    return filesBelow(join(this.#root, path))
      .filter((file) => path !== "" || !isOutside(file))
      .sort();
  }

  /** Throws unless the object has our bytes. A retried request that had already succeeded finds its own bytes. */
  async #requireOwn(key: string): Promise<void> {
    const there = await this.#bucket.get(key);
    if (there === undefined || Buffer.compare(there, readFileSync(join(this.#root, key))) !== 0)
      throw this.#changed();
  }

  #fetch(segment: ReplaySegment, files: readonly SegmentFile[]): Promise<void> {
    const { path: place } = segment;
    return this.#cache.add(segment, async (folder) => {
      makeParents(
        files.map(({ path }) => path),
        folder,
      );
      await eachInFlight(files.length, AT_ONCE, async (i) => {
        const { path } = files[i]!;
        await this.#bucket.getFile(keyOf(place, path), join(folder, path), { flush: false });
      });
      for (const [array, expected] of Object.entries(segment.arrays)) {
        const { array: actual } = await digestStoredArray(folderStore(folder), array);
        if (actual === expected) continue;
        throw new RollbookError(
          "digest-mismatch",
          { url: this.#bucket.url, array, expected, actual },
          `${this.#bucket.url}/${place}: ${array} is ${actual}, the manifest says ${expected}. Restore the objects from a copy.`,
        );
      }
    });
  }

  /** Lists the files of each segment. Segment names that writers began and no manifest lists become empty folders of
   *  the view, so the next writer takes another name. */
  async #filesOf(segments: readonly ReplaySegment[]): Promise<Map<string, SegmentFile[]>> {
    const files = new Map<string, SegmentFile[]>(segments.map(({ path }) => [path, []]));
    const plain = files.get("");
    for await (const { key, bytes } of this.#bucket.list(plain === undefined ? `${SEGMENTS}/` : "")) {
      const segment = segmentOf(key);
      const own = files.get(segment);
      if (plain !== undefined) {
        if (!isOutside(key)) plain.push({ path: key, bytes });
      } else if (own === undefined) makeDirectory(join(this.#root, segment));
      else own.push({ path: key.slice(segment.length + 1), bytes });
    }
    return files;
  }

  /** Segments of a crashed first write are no obstacle, because the next write skips their names. A plain tree has
   *  fixed names, so no object may be left there. */
  async #requireRoom(use: "write" | "create"): Promise<void> {
    const { url } = this.#bucket;
    for await (const { key } of this.#bucket.list("")) {
      if (key.startsWith(PROBE)) continue;
      if (use === "write" && key.startsWith(`${SEGMENTS}/`)) makeDirectory(join(this.#root, segmentOf(key)));
      else
        throw new RollbookError(
          "not-empty",
          { url, key },
          `${url} has no ${MANIFEST_FILE}, and holds objects such as ${key}. Name another prefix. If a writer that died left them, delete everything below ${url}/ and run the command again.`,
        );
    }
  }

  #exists(): RollbookError {
    const { url } = this.#bucket;
    return new RollbookError(
      "replay-exists",
      { url },
      `${url} is already a replay store. Name another prefix.`,
    );
  }

  #changed(): RollbookError {
    const { url } = this.#bucket;
    return new RollbookError(
      "replay-changed",
      { url },
      `${url}: another writer changed the store meanwhile. It is as that writer left it, and nothing of this write is in it. Run the command again.`,
    );
  }
}

/** Retries until the root is ours, or another writer has committed; that writer then puts the root. */
export async function putRoot(
  bucket: Bucket,
  { manifest, root }: { manifest: Uint8Array; root: Uint8Array },
): Promise<void> {
  for (;;) {
    const there = await bucket.getVersion(ROOT_FILE);
    if (there !== undefined && Buffer.compare(there.bytes, root) === 0) return;
    const current = await bucket.get(MANIFEST_FILE);
    if (current === undefined || Buffer.compare(current, manifest) !== 0) return;
    if (await bucket.putIf(ROOT_FILE, root, there?.version)) return;
  }
}

/** Replaces the view's path by the caller's name of the store: the view no longer exists when the error is read. */
function renamed(error: RollbookError, { from, to }: { from: string; to: string }): RollbookError {
  if (!error.message.includes(from)) return error;
  const fields = Object.entries(error.fields).map(([name, value]) => [
    name,
    typeof value === "string" ? value.replaceAll(from, to) : value,
  ]);
  const message = error.message.replaceAll(from, to);
  return new RollbookError(error.code, Object.fromEntries(fields), message, { cause: error });
}

function keyOf(segment: string, file: string): string {
  return segment === "" ? file : `${segment}/${file}`;
}

function segmentOf(key: string): string {
  return key.split("/").slice(0, 2).join("/");
}

/** True for files outside the tree of a plain store: the commit mark, probes, and local files of this machine. */
function isOutside(key: string): boolean {
  return (
    key === MANIFEST_FILE || key.startsWith(PROBE) || key.startsWith("writer.lock") || key.endsWith(".tmp")
  );
}

function filesBelow(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true }).flatMap((entry) =>
    entry.isFile() ? [join(entry.parentPath, entry.name).slice(folder.length + 1)] : [],
  );
}

function folderStore(folder: string) {
  return {
    get(key: string): Uint8Array | undefined {
      const path = join(folder, key);
      return existsSync(path) ? readFileSync(path) : undefined;
    },
  };
}
