/** The rollouts of a launch, each with the promise of its result. In: planned rollouts, later their results.
 *  Out: futures. Knows neither queue nor worker. */
import { RollbookError } from "../../../base/index.ts";
import type { PlannedRollout } from "../worker/index.ts";
import type { RolloutResult } from "./result.ts";

export interface RolloutFuture {
  readonly id: string;
  readonly row: number;
  readonly sample: number;
  done(): boolean;
  elapsedMs(): number;
  /** Rejects with `not-yet` after `timeoutMs`, and with `cancelled` if the launch ended without this result. */
  result(timeoutMs?: number): Promise<RolloutResult>;
  /** Cancels only this rollout, if this process runs or later claims it. The queue sets the item aside. */
  cancel(): void;
}

interface Deferred<T> {
  readonly promise: Promise<T>;
  readonly resolve: (value: T) => void;
  readonly reject: (error: unknown) => void;
}

export interface RolloutSlot extends Deferred<RolloutResult> {
  readonly planned: PlannedRollout;
  /** True once the end of the rollout is being read. */
  settled: boolean;
  /** True once the result is known. */
  told: boolean;
}

/** Rollouts in planned order, by row first. */
export class Slots {
  readonly #slots = new Map<string, RolloutSlot>();

  get size(): number {
    return this.#slots.size;
  }

  [Symbol.iterator](): Iterator<RolloutSlot> {
    return this.#slots.values();
  }

  add(planned: PlannedRollout): void {
    const slot = { ...deferred<RolloutResult>(), planned, settled: false, told: false };
    slot.promise.catch(() => {}); // callers of result() get the error
    this.#slots.set(planned.id, slot);
  }

  has(id: string): boolean {
    return this.#slots.has(id);
  }

  get(id: string): RolloutSlot | undefined {
    return this.#slots.get(id);
  }

  /** Rejects every rollout without a result: the launch is over. */
  reject(error: unknown): void {
    for (const { planned, told, reject } of this) if (!told) reject(error ?? cancelledError(planned.id));
  }
}

export function futureOf(
  slot: RolloutSlot,
  { elapsedMs, cancel }: { elapsedMs: () => number; cancel: (id: string) => void },
): RolloutFuture {
  const { planned, promise } = slot;
  const { id, row, sample } = planned;
  return {
    ...{ id, row, sample, elapsedMs },
    done: () => slot.told,
    result: (timeoutMs) => (timeoutMs === undefined ? promise : withTimeout(promise, timeoutMs, id)),
    cancel: () => {
      if (!slot.told) cancel(id);
    },
  };
}

export function deferred<T>(): Deferred<T> {
  let resolve!: (value: T) => void;
  let reject!: (error: unknown) => void;
  const promise = new Promise<T>((done, failed) => {
    [resolve, reject] = [done, failed];
  });
  return { promise, resolve, reject };
}

async function withTimeout<T>(promise: Promise<T>, timeoutMs: number, id: string): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    const error = new RollbookError(
      "not-yet",
      { id, timeoutMs },
      `${id} has not ended after ${timeoutMs} ms. Wait longer, or ask again later.`,
    );
    timer = setTimeout(() => reject(error), timeoutMs);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

function cancelledError(id: string): RollbookError {
  return new RollbookError(
    "cancelled",
    { id },
    `the launch ended before ${id} did. Launch again: what is missing runs then.`,
  );
}
