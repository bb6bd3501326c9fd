/** Who writes to a book in a bucket: each session has a key there, renewed every 15 s, and gone when the session has ended.
 *  In: a bucket; a file here for each session of this machine. Out: which sessions may still write. A session that was silent
 *  for a minute may be ended by others. Its next pack is then closed before it begins, so that it cannot go on if it lives
 *  after all. Reads no packs. */
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { makeDirectory, OWNER_ONLY, unlinkIfThere } from "../disk/index.ts";
import { type BookPaths, packId } from "../pack/index.ts";
import type { Bucket } from "./bucket.ts";
import {
  PACKS,
  PARTS,
  packKey,
  parsePackKey,
  parsePartKey,
  partKey,
  SESSIONS,
  sessionKey,
} from "./remote-keys.ts";

/** A session that has not been heard of for so long is dead: its machine or its network is. */
export const SILENT_MS = 60_000;
const BEAT_MS = 15_000;

/** The signs of life of a session. */
export interface RemoteStay {
  /** Gives none any more; other machines may take over what is in the bucket after a minute. */
  stop(): void;
  end(): Promise<void>;
}

export class RemoteSessions {
  readonly #bucket: Bucket;
  readonly #paths: BookPaths;

  constructor(bucket: Bucket, paths: BookPaths) {
    this.#bucket = bucket;
    this.#paths = paths;
  }

  /** Gives a sign of life now and then, until `end`. */
  async begin(session: string): Promise<RemoteStay> {
    makeDirectory(join(this.#paths.root, "remote"));
    writeFileSync(this.#ownFile(session), "", { mode: OWNER_ONLY });
    await this.#beat(session);
    const timer = setInterval(() => void this.#beat(session).catch(() => {}), BEAT_MS);
    timer.unref();
    const stop = () => clearInterval(timer);
    return {
      stop,
      end: async () => {
        stop();
        await this.#bucket.delete([sessionKey(session)]);
        unlinkIfThere(this.#ownFile(session));
      },
    };
  }

  /** Whether this machine began the session and did not end it. */
  isOwn(session: string): boolean {
    return existsSync(this.#ownFile(session));
  }

  /** Sessions that wrote a sign of life lately. */
  async live(): Promise<ReadonlySet<string>> {
    const { live } = await this.#list();
    return live;
  }

  /** Sessions that did not end, silent ones included: they may still add packs. */
  async open(): Promise<ReadonlySet<string>> {
    const { live, silent } = await this.#list();
    return new Set([...live, ...silent]);
  }

  /** Ends sessions that are silent. `removed`: packs that gc took out. Call after their packs were recovered and pushed; one
   *  with bytes in parts alone stays. */
  async endSilent(removed: ReadonlySet<string>): Promise<void> {
    const { silent } = await this.#list();
    for (const session of silent)
      if (await this.#close(session, removed)) await this.#bucket.delete([sessionKey(session)]);
  }

  /** Puts an empty part where the next pack of the session would begin. Every writer puts the first bytes of a pack there, on
   *  the condition that nothing is there, before it acknowledges anything in the pack. False: the session goes on. */
  async #close(session: string, removed: ReadonlySet<string>): Promise<boolean> {
    // Parts first: they give way to their pack, so a pack shows in one of the lists.
    const begun = new Map<string, number>();
    for await (const { key, bytes } of this.#bucket.list(`${PARTS}${session}-`)) {
      const part = parsePartKey(key);
      if (part !== undefined) begun.set(part.id, (begun.get(part.id) ?? 0) + bytes);
    }
    const sealed = new Set([...removed].filter((id) => id.startsWith(`${session}-`)));
    for await (const { key } of this.#bucket.list(`${PACKS}${session}-`)) sealed.add(parsePackKey(key) ?? "");
    const unsealed = [...begun].filter(([id]) => !sealed.has(id));
    if (unsealed.length > 0) return unsealed.every(([, bytes]) => bytes === 0); // closed before, or not recovered
    const last = Math.max(0, ...[...sealed].map((id) => Number(id.slice(session.length + 1))));
    const next = packId(session, last + 1);
    if (!(await this.#bucket.putNew(partKey(next, 0), new Uint8Array()))) return false;
    // The whole pack may have gone up since the lists, and its first bytes been taken away.
    for await (const { key } of this.#bucket.list(packKey(next)))
      if (key === packKey(next)) {
        await this.#bucket.delete([partKey(next, 0)]);
        return false;
      }
    return true;
  }

  async #list(): Promise<{ live: Set<string>; silent: Set<string> }> {
    const nowMs = await this.#bucket.nowMs();
    const found = { live: new Set<string>(), silent: new Set<string>() };
    for await (const { key, modifiedMs } of this.#bucket.list(SESSIONS))
      found[nowMs - modifiedMs < SILENT_MS ? "live" : "silent"].add(key.slice(SESSIONS.length));
    return found;
  }

  #beat(session: string): Promise<void> {
    return this.#bucket.replace(sessionKey(session), Buffer.from(`${new Date().toISOString()}\n`));
  }

  /** An empty file for each session that this machine began and did not end. */
  #ownFile(session: string): string {
    return join(this.#paths.root, "remote", `${session}.own`);
  }
}
