/** Group commit: all entries added while a commit is in flight become durable together, by the next commit.
 *  In: additions, waiters, and a function that commits everything its owner has collected. Out: each waiter is called
 *  once: everything added before it is durable, or it is lost. Does no I/O and does not hold the entries. */
import { forAll } from "../../base/index.ts";

/** Exactly one of these methods is called, once. */
export interface Waiter {
  durable(): void;
  lost(error: unknown): void;
}

interface GroupCommitOptions {
  /** Takes over everything added so far, synchronously, and resolves when it is durable. */
  commit(): Promise<void>;
  /** Delays a commit that has waiters, so that more entries can join. `isNext`: a commit has just ended, and more was
   *  added during it. Default: every commit starts at once. */
  gather?: ((start: () => void, isNext: boolean) => void) | undefined;
  /** A group of this size starts at once. Default: no limit. */
  enough?: number | undefined;
  /** True if nothing can be committed after a failure. Then no commit follows, and all waiters get the error. */
  failsForGood?: boolean | undefined;
}

export class GroupCommit {
  readonly #options: GroupCommitOptions;
  #added = 0;
  #waiting: Waiter[] = [];
  /** Waiters of the commit in flight. */
  #committing: Waiter[] | undefined;
  #isWanted = false;
  #isGathering = false;
  /** Error after which nothing more is committed. */
  #end: { readonly error: unknown } | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: GroupCommitOptions) {
    this.#options = options;
  }

  /** Number of additions that the commit in flight does not cover. */
  get added(): number {
    return this.#added;
  }

  /** Counts an entry that the owner has collected. Starts no commit. */
  add(): void {
    this.#added++;
  }

  /** Calls the waiter when everything added before is durable; a commit starts within `withinMs`. */
  whenDurable(waiter: Waiter, withinMs = 0): void {
    if (this.#end !== undefined) waiter.lost(this.#end.error);
    else if (this.#added > 0) {
      this.#waiting.push(waiter);
      this.want(withinMs);
    } else if (this.#committing !== undefined) this.#committing.push(waiter);
    else waiter.durable();
  }

  /** Resolves when everything added before is durable. */
  flush(withinMs = 0): Promise<void> {
    return new Promise((durable, lost) => this.whenDurable({ durable, lost }, withinMs));
  }

  /** Starts a commit within `withinMs`, even if no caller waits for it. */
  want(withinMs = 0): void {
    if (this.#end !== undefined) return;
    const { enough = Number.POSITIVE_INFINITY } = this.#options;
    if (withinMs > 0 && this.#added < enough) {
      this.#timer ??= setTimeout(() => this.want(), withinMs);
      return;
    }
    this.#isWanted = true;
    if (this.#committing === undefined) this.#schedule(false);
  }

  #schedule(isNext: boolean): void {
    if (this.#added === 0 || this.#end !== undefined) return;
    const { gather, enough = Number.POSITIVE_INFINITY } = this.#options;
    if (gather === undefined || this.#added >= enough) void this.#commit();
    else if (!this.#isGathering) {
      this.#isGathering = true;
      gather(this.#start, isNext);
    }
  }

  readonly #start = (): void => {
    this.#isGathering = false;
    if (this.#committing === undefined && this.#added > 0 && this.#end === undefined) void this.#commit();
  };

  async #commit(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const group = this.#waiting;
    this.#committing = group;
    this.#waiting = [];
    this.#added = 0;
    this.#isWanted = false;
    let tell = (each: Waiter) => each.durable();
    try {
      await this.#options.commit();
    } catch (error) {
      tell = (each) => each.lost(error);
      if (this.#options.failsForGood === true) {
        this.#end = { error };
        clearTimeout(this.#timer);
        group.push(...this.#waiting.splice(0));
      }
    }
    this.#committing = undefined;
    // Start the next commit before the waiters run: they may add more.
    if (this.#isWanted) this.#schedule(true);
    forAll(group, tell);
  }
}
