/** When a group is large enough to be committed. In: what joins it, and whether somebody waits for that. Out: a promise.
 *  A commit costs a signature, two writes to disk and messages between threads, however many rollouts it is for: what
 *  nobody waits for takes its time. */

export interface GatheringOptions {
  /** The longest a group waits for more. */
  readonly forMs: number;
  /** So many do not wait for more. */
  readonly enough: number;
}

export class Gathering {
  readonly #options: GatheringOptions;
  #joined = 0;
  #timer: NodeJS.Timeout | undefined;
  #closed: Promise<void> | undefined;
  #close = () => {};

  constructor(options: GatheringOptions) {
    this.#options = options;
  }

  join({ isUrgent }: { isUrgent: boolean }): void {
    if (this.#closed === undefined) {
      this.#closed = new Promise((done) => {
        this.#close = done;
      });
      this.#timer = setTimeout(this.#close, this.#options.forMs);
    }
    if (++this.#joined >= this.#options.enough || isUrgent) this.#close();
  }

  /** Resolves when the group that has begun is to wait no longer; what joins then begins another. */
  async done(): Promise<void> {
    await this.#closed;
    clearTimeout(this.#timer);
    this.#closed = undefined;
    this.#joined = 0;
  }
}
