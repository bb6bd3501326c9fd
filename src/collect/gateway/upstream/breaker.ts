/** Stops asking an upstream that keeps failing: closed → open after so many failed calls in a row → one trial after a
 *  pause → closed again if it works. In: a clock and outcomes. Out: whether to ask. */
import type { Clock } from "../../../base/index.ts";

export class Breaker {
  readonly #clock: Clock;
  readonly #failures: number;
  readonly #pauseMs: number;
  #inARow = 0;
  #openUntilMs = 0;
  #onTrial = false;
  #lastFailure = "";
  /** Of the failure before. */
  #lastAsked: Buffer | undefined;

  constructor(options: { clock: Clock; failures: number; pauseMs: number }) {
    this.#clock = options.clock;
    this.#failures = options.failures;
    this.#pauseMs = options.pauseMs;
  }

  /** Milliseconds to wait, or 0: go ahead, and report how it went. */
  waitMs(): number {
    if (this.#inARow < this.#failures) return 0;
    const left = this.#openUntilMs - this.#clock.nowMs();
    if (left > 0) return left;
    if (this.#onTrial) return this.#pauseMs;
    this.#onTrial = true;
    return 0;
  }

  /** Whether an attempt would be let through, without making it. */
  get isOpen(): boolean {
    return this.#inARow >= this.#failures && (this.#onTrial || this.#openUntilMs > this.#clock.nowMs());
  }

  /** Why the last call failed. */
  get lastFailure(): string {
    return this.#lastFailure;
  }

  succeeded(): void {
    this.#inARow = 0;
    this.#lastAsked = undefined;
    this.#onTrial = false;
  }

  /** A call failed, its retries included. `asked`: what the upstream answered with an error; the same words again, as
   *  clients send them, say no more about the upstream than the first time. */
  failed(why = "a call failed", asked?: Buffer): void {
    this.#lastFailure = why;
    this.#onTrial = false;
    const isRepeated = asked !== undefined && this.#lastAsked?.equals(asked) === true;
    this.#lastAsked = asked;
    if (isRepeated && this.#inARow < this.#failures) return;
    this.#inARow++;
    if (this.#inARow >= this.#failures) this.#openUntilMs = this.#clock.nowMs() + this.#pauseMs;
  }

  /** The attempt ended without saying anything about the upstream: the client left. */
  undecided(): void {
    this.#onTrial = false;
  }
}
