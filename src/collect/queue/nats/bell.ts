/** Wakes waiting callers in this process. In: rings. Out: true if the bell rang since the caller's last check. */
import type { QueueWatch } from "../queue.ts";

export class Bell {
  #rings = 0;
  #closed = false;
  readonly #waiting = new Set<() => void>();

  ring(): void {
    this.#rings++;
    for (const wake of this.#waiting) wake();
  }

  close(): void {
    this.#closed = true;
    this.ring();
  }

  watch(): QueueWatch {
    let seen = this.#rings;
    return {
      changed: async (timeoutMs) => {
        if (this.#rings === seen && !this.#closed) await this.#next(timeoutMs);
        const changed = this.#rings !== seen;
        seen = this.#rings;
        return changed;
      },
    };
  }

  #next(timeoutMs: number): Promise<void> {
    return new Promise((done) => {
      const wake = () => {
        clearTimeout(timer);
        this.#waiting.delete(wake);
        done();
      };
      const timer = setTimeout(wake, timeoutMs);
      this.#waiting.add(wake);
    });
  }
}
