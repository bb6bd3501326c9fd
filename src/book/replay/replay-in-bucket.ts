/** A replay store in a bucket, with its working copy on this machine: a directory that is a store itself.
 *  Down: the manifest, and the segments that it lists, each checked against its digests. Up: the objects of new segments, each
 *  put once; then the manifest, put only if it is still the one that was brought down; then the root. A reader of the bucket
 *  sees the store before or after. Of two writers at once one is refused, and what it wrote is in no manifest. */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { canonicalize, digestJson, type Json, RollbookError } from "../../base/index.ts";
import type { ReplayManifest, ReplaySegment } from "../../contract/index.ts";
import {
  digestStoredArray,
  eachInFlight,
  MANIFEST_FILE,
  ROOT_FILE,
  readManifest,
  SEGMENTS,
} from "../../keep/replay/index.ts";
import {
  type Bucket,
  isBucketUrl,
  makeDirectory,
  openS3Bucket,
  withLock,
  writeAtomically,
} from "../../store/index.ts";
import { copyOf } from "../open/index.ts";

/** `read`: nothing goes up. `write`: what `work` added to the store goes up when it is done. */
export type ReplayUse = "read" | "write";

/** Another process of this machine may be bringing down a large store. */
const LOCK_MS = 3_600_000;
/** Objects that are under way at a time. */
const AT_ONCE = 8;
/** No server gives an object this version. */
const NO_VERSION = '"00000000000000000000000000000000"';

/** Works on a store: on its directory, or on the working copy of a store at s3://bucket/prefix. */
export async function withReplay<T>(
  store: string,
  use: ReplayUse,
  work: (root: string) => Promise<T>,
): Promise<T> {
  if (!isBucketUrl(store)) return work(store);
  const copy = new ReplayCopy(await openS3Bucket(store), join(copyOf(store), "replay"));
  return copy.alone(async () => {
    const version = await copy.pull();
    const result = await work(copy.root);
    if (use === "write") await copy.push(version);
    return result;
  });
}

interface StoredObject {
  readonly key: string;
  readonly bytes: number;
}

/** The versions of the objects that change, as they were brought down; undefined where there is none. */
interface Versions {
  readonly manifest: string | undefined;
  readonly root: string | undefined;
}

class ReplayCopy {
  readonly root: string;
  readonly #bucket: Bucket;

  constructor(bucket: Bucket, root: string) {
    this.#bucket = bucket;
    this.root = root;
  }

  /** Beside the store: a plain one holds nothing else. */
  get #stateFile(): string {
    return `${this.root}.remote.json`;
  }

  alone<T>(work: () => Promise<T>): Promise<T> {
    makeDirectory(dirname(this.root));
    return withLock(`${this.root}.lock`, work, LOCK_MS);
  }

  async pull(): Promise<Versions> {
    const manifest = await this.#bucket.getVersion(MANIFEST_FILE);
    const root = await this.#bucket.getVersion(ROOT_FILE);
    const versions = { manifest: manifest?.version, root: root?.version };
    if (manifest === undefined) {
      for (const path of [this.root, this.#stateFile]) rmSync(path, { recursive: true, force: true });
      return versions;
    }
    makeDirectory(join(this.root, SEGMENTS));
    writeAtomically(join(this.root, MANIFEST_FILE), manifest.bytes, join(this.root, `${MANIFEST_FILE}.tmp`));
    if (root !== undefined)
      writeAtomically(join(this.root, ROOT_FILE), root.bytes, join(this.root, `${ROOT_FILE}.tmp`));
    const { segments } = readManifest(this.root);
    const there = await this.#objectsOf(segments);
    const known = this.#state();
    for (const [i, segment] of segments.entries()) {
      const objects = there.get(segment.path)!;
      if (known[segment.path] === stateOf(segment) && objects.every((each) => this.#holds(each))) continue;
      await this.#fetch(segment, objects);
      this.#remember(segments.slice(0, i + 1));
    }
    return versions;
  }

  async push({ manifest: version, root }: Versions): Promise<void> {
    const manifest = readManifest(this.root);
    const known = this.#state();
    const added = manifest.segments.filter((segment) => known[segment.path] !== stateOf(segment));
    if (added.length === 0) return;
    if (version !== undefined) await this.#requireConditions();
    for (const { path } of added) await this.#upload(path);
    const bytes = readFileSync(join(this.root, MANIFEST_FILE));
    if (!(await this.#bucket.putIf(MANIFEST_FILE, bytes, version))) await this.#requireOwn(MANIFEST_FILE);
    // Refused if another writer has committed since: then its root is the newer one.
    if (manifest.layout === "segmented")
      await this.#bucket.putIf(ROOT_FILE, readFileSync(join(this.root, ROOT_FILE)), root);
    this.#remember(manifest.segments);
  }

  /** Every object of a segment, each new. The first one decides which of two writers has the name of the segment. */
  async #upload(path: string): Promise<void> {
    const keys = filesBelow(join(this.root, path)).map((file) => (path === "" ? file : `${path}/${file}`));
    const own = keys.filter((key) => path !== "" || !isOutside(key)).sort();
    const [first, ...rest] = own;
    const put = async (key: string) => {
      if (!(await this.#bucket.putNewFile(key, join(this.root, key)))) await this.#requireOwn(key);
    };
    if (first !== undefined) await put(first);
    await eachInFlight(rest.length, AT_ONCE, (i) => put(rest[i]!));
  }

  /** A retry of a request that had succeeded finds its own bytes. */
  async #requireOwn(key: string): Promise<void> {
    const there = await this.#bucket.get(key);
    if (there === undefined || Buffer.compare(there, readFileSync(join(this.root, key))) !== 0)
      throw this.#changed();
  }

  /** A copy that a power loss cut short is brought down again; damage inside a file is found by its digest. */
  #holds({ key, bytes }: StoredObject): boolean {
    return statSync(join(this.root, key), { throwIfNoEntry: false })?.size === bytes;
  }

  async #fetch(segment: ReplaySegment, objects: readonly StoredObject[]): Promise<void> {
    const { path } = segment;
    const folder = join(this.root, path);
    if (path !== "") rmSync(folder, { recursive: true, force: true });
    for (const directory of new Set(objects.map(({ key }) => dirname(join(this.root, key)))))
      mkdirSync(directory, { recursive: true });
    await eachInFlight(objects.length, AT_ONCE, async (i) => {
      const { key } = objects[i]!;
      await this.#bucket.getFile(key, join(this.root, key), { flush: false });
    });
    for (const [array, expected] of Object.entries(segment.arrays)) {
      const { array: actual } = await digestStoredArray(folderStore(folder), array);
      if (actual === expected) continue;
      throw new RollbookError(
        "digest-mismatch",
        { url: this.#bucket.url, array, expected, actual },
        `${this.#bucket.url}/${path}: ${array} is ${actual}, the manifest says ${expected}. Restore the objects from a copy.`,
      );
    }
  }

  /** The objects of each segment. Names that writers began and no manifest lists become empty folders here: the next writer
   *  takes another. Folders that only this machine has are left from a write that was refused. */
  async #objectsOf(segments: readonly ReplaySegment[]): Promise<Map<string, StoredObject[]>> {
    const there = new Map<string, StoredObject[]>(segments.map(({ path }) => [path, []]));
    for (const name of readdirSync(join(this.root, SEGMENTS)))
      if (!there.has(`${SEGMENTS}/${name}`))
        rmSync(join(this.root, SEGMENTS, name), { recursive: true, force: true });
    for await (const object of this.#bucket.list(there.has("") ? "" : `${SEGMENTS}/`)) {
      const segment = object.key.split("/").slice(0, 2).join("/");
      const objects = there.get("") ?? there.get(segment);
      if (objects === undefined) makeDirectory(join(this.root, segment));
      else if (segment.startsWith(`${SEGMENTS}/`) || !isOutside(object.key)) objects.push(object);
    }
    return there;
  }

  /** A server that ignores If-Match would let writers overwrite each other. */
  async #requireConditions(): Promise<void> {
    const { url } = this.#bucket;
    const there = await this.#bucket.get(MANIFEST_FILE);
    if (there === undefined || !(await this.#bucket.putIf(MANIFEST_FILE, there, NO_VERSION))) return;
    throw new RollbookError(
      "unconditional-bucket",
      { url },
      `${url}: the server ignores the condition If-Match, so that writers would overwrite each other. Use a server that honours it.`,
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

  /** Segments that the working copy and the bucket both hold, by path. */
  #state(): Readonly<Record<string, string>> {
    return existsSync(this.#stateFile)
      ? (JSON.parse(readFileSync(this.#stateFile, "utf8")) as Record<string, string>)
      : {};
  }

  #remember(segments: ReplayManifest["segments"]): void {
    const state = Object.fromEntries(segments.map((segment) => [segment.path, stateOf(segment)]));
    writeFileSync(this.#stateFile, canonicalize(state));
  }
}

function stateOf(segment: ReplaySegment): string {
  return digestJson("rollbook.replay-copy.v1", segment as unknown as Json);
}

/** Beside the tree of a plain store: the commit mark, and what only this machine has. */
function isOutside(key: string): boolean {
  return key === MANIFEST_FILE || key.startsWith("writer.lock") || key.endsWith(".tmp");
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
