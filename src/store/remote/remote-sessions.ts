/** Sessions that write to a book in a bucket. Each session has a key there, renewed every 15 s and deleted when the
 *  session ends.
 *  In: a bucket; a local file for each session of this machine. Out: sessions that may still write. Other machines may
 *  end a session that was silent for a minute. They close its next pack before it begins, so that the session cannot
 *  continue if it is still alive. Reads no packs. */
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

/** After this silence a session counts as dead: its machine or its network failed. */
export const SILENT_MS = 60_000;
const BEAT_MS = 15_000;

/** Heartbeats of a session. */
export interface RemoteStay {
  /** Stops the heartbeats. After a minute other machines may recover what is in the bucket. */
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

  /** Starts the heartbeats, which last until `end`. */
  async begin(session: string): Promise<RemoteStay> {
    makeDirectory(join(this.#paths.root, "remote"));
    writeFileSync(this.#ownFile(session), "", { mode: OWNER_ONLY });
    try {
      await this.#beat(session);
    } catch (error) {
      unlinkIfThere(this.#ownFile(session));
      throw error;
    }
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

  /** True if this machine began the session and did not end it. */
  isOwn(session: string): boolean {
    return existsSync(this.#ownFile(session));
  }

  /** Sessions with a recent heartbeat. */
  async live(): Promise<ReadonlySet<string>> {
    const { live } = await this.#list();
    return live;
  }

  /** Sessions that have not ended, including silent ones: they may still add packs. */
  async open(): Promise<ReadonlySet<string>> {
    const { live, silent } = await this.#list();
    return new Set([...live, ...silent]);
  }

  /** Ends silent sessions. `removed`: packs that gc removed. Call after their packs were recovered and pushed. A
   *  session with bytes only in parts stays. */
  async endSilent(removed: ReadonlySet<string>): Promise<void> {
    const { silent } = await this.#list();
    for (const session of silent)
      if (await this.#close(session, removed)) await this.#bucket.delete([sessionKey(session)]);
  }

  /** Puts an empty part where the next pack of the session would begin. Every writer puts the first bytes of a pack
   *  there before it acknowledges anything in the pack. That put requires a new key. False: the session continues. */
  async #close(session: string, removed: ReadonlySet<string>): Promise<boolean> {
    // Parts first: a sealed pack replaces its parts, so a pack is in one of the two lists.
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
    // Since the listing, the whole pack may have been uploaded and its first part deleted.
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
