/** Makes the heads of one session.
 *  In: how far the session's own pack has come. Out: signed heads, each chained to the one before. Reads the footers of
 *  packs that no head covers yet; does not write into packs and does not decide when. */
import { readFileSync } from "node:fs";
import type { Clock, Digest } from "../../base/index.ts";
import type { BookHead, PackState, SealedBlob, SignHead } from "../../contract/index.ts";
import { type BookPaths, bookDigestOf, footerOf, listPacks } from "../pack/index.ts";
import { type HeadState, readHeadState, writeHeadState } from "./head-state.ts";

export interface HeadOptions {
  /** Packs of other writers that are still open, as far as they are on disk. */
  readonly others?: readonly PackState[];
  /** Packs that are about to be removed, as they were. */
  readonly replaced?: readonly PackState[];
  /** Heads that this one stands for, and where their digests are. */
  readonly folded?: BookHead["folded"];
  /** Joins what another session has left since this one began. Call under the book's lock. */
  readonly joins?: boolean;
}

export class HeadWriter {
  readonly #paths: BookPaths;
  readonly #clock: Clock;
  readonly #sign: SignHead;
  /** What this session's last head leads to. */
  #state: HeadState | undefined;
  /** The head that another session left, as far as ours lead to it. */
  #joined: Digest | undefined;

  constructor(paths: BookPaths, { clock, sign }: { clock: Clock; sign: SignHead }) {
    this.#paths = paths;
    this.#clock = clock;
    this.#sign = sign;
  }

  /** `own`: the pack that the head goes into, before it does. */
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
    // One that was open when it was looked at may be sealed by now: its footer says more.
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

  /** Whether another session has left a head that ours do not lead to. Call under the book's lock. */
  get isBehind(): boolean {
    return readHeadState(this.#paths).head !== this.#joined;
  }

  /** Leaves the last head to the next writer. Call under the book's lock. */
  leave(): void {
    if (this.#state !== undefined) writeHeadState(this.#paths, this.#state);
  }
}

function byPack(a: PackState, b: PackState): number {
  return a.pack < b.pack ? -1 : 1;
}
