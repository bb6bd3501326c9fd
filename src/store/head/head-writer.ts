/** Makes the heads of one session.
 *  In: the state of the session's own pack. Out: signed heads, each chained to the previous one. Reads the footers of
 *  packs that no head covers yet. Does not write into packs and does not decide when to write. */
import { readFileSync } from "node:fs";
import type { Clock, Digest } from "../../base/index.ts";
import type { BookHead, PackState, SealedBlob, SignHead } from "../../contract/index.ts";
import { type BookPaths, bookDigestOf, footerOf, listPacks } from "../pack/index.ts";
import { type HeadState, readHeadState, writeHeadState } from "./head-state.ts";

export interface HeadOptions {
  /** State on disk of open packs of other writers. */
  readonly others?: readonly PackState[];
  /** Packs that are about to be removed, in their last state. */
  readonly replaced?: readonly PackState[];
  /** Number of heads that this head folds, and the list of their digests. */
  readonly folded?: BookHead["folded"];
  /** True to reference heads that another session saved since this session began. Call under the book's lock. */
  readonly joins?: boolean;
}

export class HeadWriter {
  readonly #paths: BookPaths;
  readonly #clock: Clock;
  readonly #sign: SignHead;
  /** State of this session's last head. */
  #state: HeadState | undefined;
  /** Last saved head of another session that our heads reference. */
  #joined: Digest | undefined;

  constructor(paths: BookPaths, { clock, sign }: { clock: Clock; sign: SignHead }) {
    this.#paths = paths;
    this.#clock = clock;
    this.#sign = sign;
  }

  /** `own`: state of the pack that will hold the head, before the head is added. */
  async make(own: PackState, options: HeadOptions = {}): Promise<SealedBlob> {
    const before = this.#state ?? readHeadState(this.#paths);
    const isFirst = this.#state === undefined;
    const latest = options.joins === true && !isFirst ? readHeadState(this.#paths) : before;
    const known = new Set([...before.packs, ...latest.packs]);
    const here = listPacks(this.#paths).filter(({ sealed }) => sealed);
    const fresh = here
      .filter(({ id }) => !known.has(id))
      .flatMap(({ id }) => footerOf(this.#paths, id) ?? []);
    const previous = [before.head, latest.head].filter((head): head is Digest => head !== undefined);
    const sequence = Math.max(before.sequence, latest.sequence) + 1;
    const { replaced = [], folded } = options;
    // A pack that was open when it was examined may be sealed now. Its footer then covers more.
    const sealed = new Set(fresh.map(({ pack }) => pack));
    const others = (options.others ?? []).filter(({ pack }) => !sealed.has(pack));
    const head = await this.#sign({
      book: bookDigestOf(readFileSync(this.#paths.bookJson)),
      ...{ sequence, previous: [...new Set(previous)].sort() },
      packs: [...fresh, ...others, own].sort(byPack),
      ...(replaced.length === 0 ? {} : { replaced: [...replaced].sort(byPack) }),
      ...(folded === undefined ? {} : { folded }),
      atMs: this.#clock.nowMs(),
    });
    const packs = new Set(here.filter(({ id }) => known.has(id)).map(({ id }) => id));
    for (const { pack } of fresh) packs.add(pack);
    this.#state = { head: head.digest, sequence, packs };
    if (isFirst || options.joins === true) this.#joined = latest.head;
    return head;
  }

  /** True if another session has saved a head that our heads do not reference. Call under the book's lock. */
  get isBehind(): boolean {
    return readHeadState(this.#paths).head !== this.#joined;
  }

  /** Saves the last head for the next writer. Call under the book's lock. */
  leave(): void {
    if (this.#state !== undefined) writeHeadState(this.#paths, this.#state);
  }
}

function byPack(a: PackState, b: PackState): number {
  return a.pack < b.pack ? -1 : 1;
}
