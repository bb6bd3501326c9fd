/** The place where gc replaces packs: this disk, or a bucket with a working copy here. In: the packs to remove. Out: a
 *  session for the remaining blobs, and the removal. The order is always the same: new packs and their head are
 *  written, the removal takes effect, bytes are deleted. Does not decide which packs are removed. */
import { readdirSync } from "node:fs";
import { join } from "node:path";
import type { Clock } from "../../base/index.ts";
import type { SignHead } from "../../contract/index.ts";
import { PACK_BYTES } from "../book.ts";
import { syncDirectory, unlinkIfThere } from "../disk/index.ts";
import type { HeadOptions } from "../head/index.ts";
import { type BookPaths, LARGE_BYTES, parseLargeName, recoverBook } from "../pack/index.ts";
import type { RemoteBook } from "../remote/index.ts";
import { Session } from "../session.ts";

export type LastHead = Pick<HeadOptions, "replaced" | "folded" | "others">;

export interface GcPlace {
  /** Packs whose sessions have ended. Undefined: the locks of this machine are sufficient. */
  resting(): Promise<ReadonlySet<string> | undefined>;
  /** Session that writes the replacement packs. */
  session(): Promise<Session>;
  /** Completes the new packs. From then on the packs of `replaced` may be removed. */
  settle(head: LastHead, replaced: readonly string[]): Promise<void>;
  /** Deletes the bytes of replaced packs, and the leftovers of dead writers. */
  remove(replaced: readonly string[]): Promise<void>;
  /** Closes the session and allows other collections, also after a failure. */
  end(): Promise<void>;
}

interface PlaceOptions {
  readonly clock: Clock;
  readonly sign?: SignHead | undefined;
}

/** Recovers the packs of dead writers, and blocks other collections. */
export async function openGcPlace(
  paths: BookPaths,
  remote: RemoteBook | undefined,
  options: PlaceOptions,
): Promise<GcPlace> {
  if (remote !== undefined) return BucketPlace.open(paths, remote, options);
  await recoverBook(paths);
  return new DiskPlace(paths, options);
}

function begin(paths: BookPaths, { clock, sign }: PlaceOptions, remote?: RemoteBook): Promise<Session> {
  const limits = { packBytes: PACK_BYTES, largeBytes: LARGE_BYTES };
  return Session.begin(paths, { clock, ...limits, remote, sign: () => sign });
}

class DiskPlace implements GcPlace {
  readonly #paths: BookPaths;
  readonly #options: PlaceOptions;
  #session: Session | undefined;

  constructor(paths: BookPaths, options: PlaceOptions) {
    this.#paths = paths;
    this.#options = options;
  }

  async resting(): Promise<undefined> {}

  async session(): Promise<Session> {
    this.#session ??= await begin(this.#paths, this.#options);
    return this.#session;
  }

  async settle(head: LastHead): Promise<void> {
    const session = this.#session;
    this.#session = undefined;
    await session?.close(head);
  }

  /** Packs first: a large file without a pack is removed later, but a pack without its large file would be damage. */
  async remove(replaced: readonly string[]): Promise<void> {
    for (const id of replaced) unlinkIfThere(this.#paths.sealedPack(id));
    syncDirectory(this.#paths.packs);
    for (const directory of [this.#paths.large, this.#paths.tmp]) {
      const files = readdirSync(directory);
      // The order matters. A writer creates lock and pack before its large files, and drops the lock after its packs
      // have their final names. So an owner that is or was alive is in one of the two lists.
      const locks = readdirSync(this.#paths.locks);
      const owners = new Set([...locks, ...readdirSync(this.#paths.packs)]);
      for (const file of files) {
        const pack = parseLargeName(file)?.pack;
        if (pack === undefined) continue;
        const session = pack.slice(0, pack.lastIndexOf("-"));
        const isOwned = [`${pack}.open`, `${pack}.pack`, `${session}.lock`].some((owner) =>
          owners.has(owner),
        );
        if (!isOwned) unlinkIfThere(join(directory, file));
      }
    }
  }

  end(): Promise<void> {
    return this.settle({});
  }
}

/** The session begins before anything is read: its heartbeats block other collections. */
class BucketPlace implements GcPlace {
  readonly #remote: RemoteBook;
  readonly #session: Session;
  #isClosed = false;

  private constructor(remote: RemoteBook, session: Session) {
    this.#remote = remote;
    this.#session = session;
  }

  static async open(paths: BookPaths, remote: RemoteBook, options: PlaceOptions): Promise<BucketPlace> {
    const place = new BucketPlace(remote, await begin(paths, options, remote));
    try {
      await remote.alone(() => recoverBook(paths, (pack) => remote.mayRecover(pack)));
      await remote.pushForgotten();
      // The dead sessions include a gc that died: it can add nothing to the packs surveyed now.
      await remote.endSilent();
      await remote.removed.take(place.#session.name);
      await remote.pull();
      return place;
    } catch (error) {
      await place.#close();
      throw error;
    }
  }

  resting(): Promise<ReadonlySet<string>> {
    return this.#remote.packsAtRest();
  }

  async session(): Promise<Session> {
    return this.#session;
  }

  async settle(head: LastHead, replaced: readonly string[]): Promise<void> {
    this.#isClosed = true;
    await this.#session.close(head, () => this.#remote.removed.commit(this.#session.name, replaced));
  }

  remove(): Promise<void> {
    return this.#remote.sweep();
  }

  async end(): Promise<void> {
    await this.#close();
    await this.#remote.removed.release(this.#session.name);
  }

  async #close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    await this.#session.close();
  }
}
