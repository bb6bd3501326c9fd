/** Circuit breaker of an upstream: closed → open after a number of consecutive failed calls → one trial after a
 *  pause → closed again if the trial succeeds. In: a clock and outcomes. Out: the permission to send a call. */
import type { Clock } from "../../../base/index.ts";

export class Breaker {
  readonly #clock: Clock;
  readonly #failures: number;
  readonly #pauseMs: number;
  #inARow = 0;
  #openUntilMs = 0;
  /** Call that is the trial. It stays the trial while it waits for a retry. */
  #trial: object | undefined;
  #lastFailure = "";
  /** Request body of the previous failure. */
  #lastAsked: Buffer | undefined;

  constructor(options: { clock: Clock; failures: number; pauseMs: number }) {
    this.#clock = options.clock;
    this.#failures = options.failures;
    this.#pauseMs = options.pauseMs;
  }

  /** Milliseconds that `call` must wait. 0 permits an attempt. Report the outcome of the call after its retries. */
  waitMs(call: object): number {
    if (this.#inARow < this.#failures) return 0;
    const left = this.#openUntilMs - this.#clock.nowMs();
    if (left > 0) return left;
    if (this.#trial !== undefined && this.#trial !== call) return this.#pauseMs;
    this.#trial = call;
    return 0;
  }

  /** True while attempts are refused. Reading it starts no trial. */
  get isOpen(): boolean {
    return (
      this.#inARow >= this.#failures && (this.#trial !== undefined || this.#openUntilMs > this.#clock.nowMs())
    );
  }

  /** Reason of the last failed call. */
  get lastFailure(): string {
    return this.#lastFailure;
  }

  succeeded(): void {
    this.#inARow = 0;
    this.#lastAsked = undefined;
    this.#trial = undefined;
  }

  /** Reports a failed call, after its retries. `asked` is the request that the upstream answered with an error. A
   *  client may repeat a failing request; the repetition is no new evidence about the upstream. */
  failed(why = "a call failed", asked?: Buffer): void {
    this.#lastFailure = why;
    this.#trial = undefined;
    const isRepeated = asked !== undefined && this.#lastAsked?.equals(asked) === true;
    this.#lastAsked = asked;
    if (isRepeated && this.#inARow < this.#failures) return;
    this.#inARow++;
    if (this.#inARow >= this.#failures) this.#openUntilMs = this.#clock.nowMs() + this.#pauseMs;
  }

  /** Ends a call without an outcome for the upstream: the client left. The trial of another call goes on. */
  undecided(call: object): void {
    if (this.#trial === call) this.#trial = undefined;
  }
}
