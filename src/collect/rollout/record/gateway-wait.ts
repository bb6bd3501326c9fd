/** Waits for a gateway that goes away during a launch, for example during a restart. In: the gateways' URLs. Out: work
 *  that is done once a gateway answers. All rollouts of a process wait together. After the longest wait they fail at
 *  once, until a gateway answers again. */
import { setTimeout as sleep } from "node:timers/promises";
import { isRollbookError } from "../../../base/index.ts";

export interface GatewayWait {
  /** The longest wait (default: 60 s). */
  readonly waitMs?: number | undefined;
  readonly log?: ((line: string) => void) | undefined;
}

const WAIT_MS = 60_000;
const FIRST_PAUSE_MS = 100;
const MOST_PAUSE_MS = 2_000;
/** Bounds the retries for a server that answers but still drops the work. */
const MOST_TRIES = 5;

export class AwayGateway {
  readonly #urls: readonly string[];
  readonly #options: GatewayWait;
  #back: Promise<boolean> | undefined;
  #isGivenUp = false;

  constructor(urls: readonly string[], options: GatewayWait) {
    this.#urls = urls;
    this.#options = options;
  }

  /** Does the work, and retries it if no gateway could be reached. Waiting ends when `signal` is aborted. */
  async reach<T>(work: () => Promise<T>, signal: AbortSignal | undefined): Promise<T> {
    for (let tries = 1; ; tries++) {
      try {
        const done = await work();
        this.#isGivenUp = false;
        return done;
      } catch (error) {
        const isLast = this.#isGivenUp || signal?.aborted === true || tries === MOST_TRIES;
        if (!isAway(error) || isLast) throw error;
        this.#back ??= this.#wait().finally(() => {
          this.#back = undefined;
        });
        if (!(await unlessAborted(this.#back, signal))) throw error;
      }
    }
  }

  /** True if a gateway answered in time. */
  async #wait(): Promise<boolean> {
    const { waitMs = WAIT_MS, log } = this.#options;
    const name = this.#urls.join(", ");
    log?.(`the gateway at ${name} does not answer; waiting up to ${Math.ceil(waitMs / 1000)} s`);
    let waitedMs = 0;
    for (let pauseMs = FIRST_PAUSE_MS; waitedMs < waitMs; pauseMs = Math.min(2 * pauseMs, MOST_PAUSE_MS)) {
      // Does not keep the process alive: the worker's heartbeat does, and a launch that has ended does not wait.
      await sleep(pauseMs, undefined, { ref: false });
      waitedMs += pauseMs;
      if (!(await this.#answers())) continue;
      log?.(`the gateway answers again after ${Math.ceil(waitedMs / 1000)} s`);
      return true;
    }
    this.#isGivenUp = true;
    return false;
  }

  /** Any status counts as an answer. */
  async #answers(): Promise<boolean> {
    const asked = this.#urls.map(async (url) => {
      const response = await fetch(`${url}/v1/book`, { signal: AbortSignal.timeout(MOST_PAUSE_MS) });
      await response.body?.cancel();
    });
    return Promise.any(asked).then(
      () => true,
      () => false,
    );
  }
}

function isAway(error: unknown): boolean {
  return isRollbookError(error, "failed-infrastructure") && error.fields.isAway === true;
}

async function unlessAborted(back: Promise<boolean>, signal: AbortSignal | undefined): Promise<boolean> {
  if (signal === undefined) return back;
  let stop = () => {};
  const aborted = new Promise<boolean>((resolve) => {
    stop = () => resolve(false);
  });
  signal.addEventListener("abort", stop, { once: true });
  try {
    return await Promise.race([back, aborted]);
  } finally {
    signal.removeEventListener("abort", stop);
  }
}
