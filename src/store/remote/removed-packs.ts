/** Packs that gc removed from a book in a bucket, and the session that collects now: one object, packs/gc.json. Only a
 *  process that read its last version may replace it, so one of two concurrent collections is refused. A pack is gone
 *  for every reader once the object names it; its bytes are deleted afterwards. A kill in between leaves bytes that no
 *  reader uses and the next gc deletes. The names stay: a machine that returns after a year must not push a pack
 *  again. */
import { isObject, RollbookError } from "../../base/index.ts";
import type { Bucket } from "./bucket.ts";
import { GC_KEY, sessionKey } from "./remote-keys.ts";

interface GcState {
  /** Session of a running gc, or of a gc whose machine died. */
  readonly collector?: string | undefined;
  readonly removed: readonly string[];
}

export class RemovedPacks {
  readonly #bucket: Bucket;
  /** The last version that was read. */
  #version: string | undefined;
  #state: GcState = { removed: [] };
  #names: ReadonlySet<string> = new Set();

  constructor(bucket: Bucket) {
    this.#bucket = bucket;
  }

  /** Removed packs, as last read. */
  get known(): ReadonlySet<string> {
    return this.#names;
  }

  /** True if the version in a listing is the version that was last read. */
  isKnown(version: string | undefined): boolean {
    return version === this.#version;
  }

  async names(): Promise<ReadonlySet<string>> {
    await this.#read();
    return this.#names;
  }

  /** Refuses while another gc is running. Call after dead sessions were ended: a session with heartbeats may
   *  continue. */
  async take(session: string): Promise<void> {
    await this.#read();
    const { collector, removed } = this.#state;
    if (collector !== undefined && collector !== session)
      for await (const { key } of this.#bucket.list(sessionKey(collector)))
        if (key === sessionKey(collector)) throw this.#isTaken();
    await this.#replace({ collector: session, removed });
  }

  /** Makes the removal take effect. Everything that replaces the packs must be in the bucket. */
  commit(session: string, packs: readonly string[]): Promise<void> {
    return this.#giveUp(session, packs);
  }

  /** Allows other collections. Does nothing after a commit, or if another gc has taken over. */
  async release(session: string): Promise<void> {
    await this.#read();
    if (this.#state.collector === session) await this.#giveUp(session, []);
  }

  async #giveUp(session: string, packs: readonly string[]): Promise<void> {
    const { collector, removed } = this.#state;
    if (collector !== session) throw this.#isTaken();
    await this.#replace({ removed: [...new Set([...removed, ...packs])].sort() });
  }

  /** Replaces the version that was last read. */
  async #replace(state: GcState): Promise<void> {
    const bytes = Buffer.from(`${JSON.stringify(state)}\n`);
    const isPut = await this.#bucket.putIf(GC_KEY, bytes, this.#version);
    const there = await this.#read();
    // After a retry of a request that had succeeded, the key holds our own bytes.
    if (!isPut && (there === undefined || Buffer.compare(there, bytes) !== 0)) throw this.#isTaken();
  }

  async #read(): Promise<Uint8Array | undefined> {
    const found = await this.#bucket.getVersion(GC_KEY);
    if (found === undefined) return undefined;
    const state = parseState(found.bytes);
    if (state === undefined)
      throw new RollbookError(
        "bad-object",
        { url: this.#bucket.url, key: GC_KEY },
        `${this.#bucket.url}/${GC_KEY} is not what gc writes. Restore the object from a copy: it says which packs were removed.`,
      );
    this.#version = found.version;
    this.#state = state;
    this.#names = new Set(state.removed);
    return found.bytes;
  }

  #isTaken(): RollbookError {
    const { url } = this.#bucket;
    return new RollbookError(
      "gc-running",
      { root: url },
      `${url}: another gc is at work, or one that died was heard of less than a minute ago. Nothing was removed. Run the command again later.`,
    );
  }
}

function parseState(bytes: Uint8Array): GcState | undefined {
  let value: unknown;
  try {
    value = JSON.parse(Buffer.from(bytes).toString("utf8"));
  } catch {
    return undefined;
  }
  if (!isObject(value) || !Array.isArray(value.removed)) return undefined;
  const { collector, removed } = value as { collector?: unknown; removed: unknown[] };
  if (collector !== undefined && typeof collector !== "string") return undefined;
  return removed.every((each) => typeof each === "string")
    ? { collector, removed: removed as string[] }
    : undefined;
}
