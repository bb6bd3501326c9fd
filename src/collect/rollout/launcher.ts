/** Launches rollouts: rows × samples, durable, resumable, in completion order.
 *  In: rows, an agent, a book, a queue. Out: results, by iterating or by future. Work begins at once; leaving the
 *  iteration early cancels what runs here and gives its claims back. The same launch again runs only what is missing:
 *  ids follow from content, the queue knows what is done, the book what is sealed. Does not parse files or print. */
import type { Clock } from "../../base/clock.ts";
import { RollbookError } from "../../base/errors.ts";
import type { Id } from "../../base/ids.ts";
import type { Rng } from "../../base/rng.ts";
import type { PublicKey, Signer } from "../../contract/index.ts";
import type { Book } from "../../store/index.ts";
import { makeSealer } from "../../store/sealer.ts";
import type { Admit } from "../admission.ts";
import type { SettledItem, WorkQueue } from "../queue/queue.ts";
import type { Agent } from "./agent.ts";
import { type LaunchSettings, type Overrides, type PlannedRollout, planner } from "./plan.ts";
import { type Progress, Tally } from "./progress.ts";
import { Receipts } from "./receipts.ts";
import { bookRecorder, type Recorder } from "./recorder.ts";
import { type ReadResult, type RolloutResult, readResult } from "./result.ts";
import type { RowForm } from "./rows.ts";
import { openSealedIndex } from "./sealed-index.ts";
import { type Attempts, startWorker, type Worker } from "./worker.ts";
import { makeDesk, type WorkerDesk } from "./worker-protocol.ts";

export interface LaunchOptions extends Omit<LaunchSettings, "agent"> {
  readonly agent: Agent;
  readonly book: Book;
  readonly queue: WorkQueue;
  readonly clock: Clock;
  readonly rng: Rng;
  readonly worker: Id;
  /** Signs what is uploaded here, and the receipts. */
  readonly signer: Signer;
  /** Whose signatures count besides our own: of workers that died, and of gateways. */
  readonly trusts?: (key: PublicKey) => boolean;
  /** Judges every rollout when it is uploaded. */
  readonly admit?: Admit;
  /** Who records the rollouts; the book itself unless given. */
  readonly recorder?: Recorder;
  /** How many run at a time in this process; 0: only others work. */
  readonly concurrency: number;
  readonly form?: RowForm;
  /** What is different for one row: configuration, limits. */
  readonly override?: (row: unknown, index: number) => Overrides | undefined;
  readonly attempts?: Partial<Attempts>;
  readonly retryBaseMs?: number;
  readonly heartbeatMs?: number;
  readonly rate?: number;
  /** The launch ends this long after it began, finished or not. */
  readonly deadlineMs?: number;
  readonly signal?: AbortSignal;
  readonly log?: (message: string) => void;
}

export interface RolloutFuture {
  readonly id: string;
  readonly row: number;
  readonly sample: number;
  done(): boolean;
  elapsedMs(): number;
  /** Rejects with `not-yet` after `timeoutMs`, with `cancelled` if the launch ended without it. */
  result(timeoutMs?: number): Promise<RolloutResult>;
  /** This rollout only; the queue sets it aside. */
  cancel(): void;
}

export interface Launch extends AsyncIterable<RolloutResult> {
  /** One for each rollout, rows first, once everything is enqueued. */
  futures(): Promise<readonly RolloutFuture[]>;
  progress(): Progress;
  /** Stops what runs here and gives it back; resolves when nothing is held any more. */
  cancel(): Promise<void>;
}

export function launch(rows: Iterable<unknown> | AsyncIterable<unknown>, options: LaunchOptions): Launch {
  return new RunningLaunch(rows, options);
}

/** Rows enqueued in one commit. */
const CHUNK = 256;
const LOOK_MS = 500;

interface Deferred<T> {
  readonly promise: Promise<T>;
  readonly resolve: (value: T) => void;
  readonly reject: (error: unknown) => void;
}

interface Slot extends Deferred<RolloutResult> {
  readonly planned: PlannedRollout;
  /** Its end is being read. */
  settled: boolean;
  /** Its result is known to whoever asks. */
  told: boolean;
}

class RunningLaunch implements Launch {
  readonly #options: LaunchOptions;
  readonly #tally: Tally;
  readonly #startMs: number;
  readonly #stop = new AbortController();
  readonly #slots = new Map<string, Slot>();
  readonly #cancelled = new Set<string>();
  readonly #results: RolloutResult[] = [];
  readonly #planned: Promise<void>;
  readonly #over: Promise<void>;
  readonly #desk: WorkerDesk;
  #receipts!: Receipts;
  #worker: Worker | undefined;
  #wake: () => void = () => {};
  #ended: { error?: unknown } | undefined;

  constructor(rows: Iterable<unknown> | AsyncIterable<unknown>, options: LaunchOptions) {
    this.#options = options;
    this.#tally = new Tally(options.clock);
    this.#desk = deskOf(options);
    this.#startMs = options.clock.nowMs();
    const planned = deferred<void>();
    this.#planned = planned.promise;
    this.#planned.catch(() => {}); // told to whoever asks for futures, and to the iteration
    this.#over = this.#run(rows, planned.resolve).then(
      () => this.#end({}),
      (error: unknown) => {
        planned.reject(error);
        this.#end({ error });
      },
    );
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<RolloutResult, void, void> {
    try {
      for (;;) {
        const next = this.#results.shift();
        if (next !== undefined) yield next;
        else if (this.#ended !== undefined) break;
        else
          await new Promise<void>((resolve) => {
            this.#wake = resolve;
          });
      }
      if (this.#ended?.error !== undefined) throw this.#ended.error;
    } finally {
      await this.cancel();
    }
  }

  async futures(): Promise<readonly RolloutFuture[]> {
    await this.#planned;
    return [...this.#slots.values()].map((slot) => this.#future(slot));
  }

  progress(): Progress {
    return this.#tally.now();
  }

  async cancel(): Promise<void> {
    this.#stop.abort();
    await this.#over;
  }

  async #run(rows: Iterable<unknown> | AsyncIterable<unknown>, planned: () => void): Promise<void> {
    const { deadlineMs, signal } = this.#options;
    const stop = () => this.#stop.abort();
    const timer = deadlineMs === undefined ? undefined : setTimeout(stop, deadlineMs);
    signal?.addEventListener("abort", stop, { once: true });
    if (signal?.aborted) stop();
    const sealed = await openSealedIndex(this.#options.book.root);
    this.#receipts = new Receipts(sealed, this.#desk);
    try {
      const cursor = await this.#readEarlier();
      await this.#enqueueAll(rows);
      planned();
      await this.#revive();
      this.#worker = this.#startWorker(sealed);
      await this.#follow(cursor);
    } finally {
      stop();
      await this.#worker?.ended.finally(() => sealed.close());
      if (this.#worker === undefined) await sealed.close();
      clearTimeout(timer);
      signal?.removeEventListener("abort", stop);
    }
  }

  readonly #earlier = new Map<string, SettledItem>();

  /** What earlier runs settled, before anything of this one can. */
  async #readEarlier(): Promise<number> {
    let cursor = 0;
    for (;;) {
      const page = await this.#options.queue.settled(cursor, 1000);
      for (const item of page) this.#earlier.set(item.item, item);
      if (page.length === 0) return cursor;
      cursor = page.at(-1)!.cursor;
    }
  }

  async #enqueueAll(rows: Iterable<unknown> | AsyncIterable<unknown>): Promise<void> {
    const { book, queue, form, override, log, agent, signer } = this.#options;
    const plan = planner({ ...this.#options, agent: agent.digest }, form);
    const sealer = makeSealer(book, signer);
    let chunk: PlannedRollout[] = [];
    let puts: Promise<void>[] = [];
    const flush = async () => {
      await Promise.all(puts); // tasks are durable before the queue names them
      await queue.enqueue(chunk.map(({ item }) => item));
      [chunk, puts] = [[], []];
    };
    let index = 0;
    for await (const row of rows) {
      if (this.#stop.signal.aborted) break;
      const { task, assignment, rollouts, warning } = plan(row, override?.(row, index++));
      if (warning !== undefined) log?.(warning);
      if (!(await book.has(assignment.digest)))
        puts.push(sealer.add({ envelope: assignment, blobs: [task, assignment] }));
      for (const rollout of rollouts) this.#addSlot(rollout);
      chunk.push(...rollouts);
      if (chunk.length >= CHUNK) await flush();
    }
    await flush();
  }

  /** Whoever gives the same command again wants what is missing, and what was set aside is missing. */
  async #revive(): Promise<void> {
    const ours = [...this.#earlier.values()].filter(({ item }) => this.#slots.has(item));
    const dead = ours.filter(({ state }) => state === "dead").map(({ item }) => item);
    if (dead.length > 0) await this.#options.queue.revive(dead);
    await this.#settle(
      ours.filter(({ state }) => state === "done"),
      true,
    );
  }

  #startWorker(sealed: Awaited<ReturnType<typeof openSealedIndex>>): Worker | undefined {
    const { concurrency, worker, recorder } = this.#options;
    if (concurrency === 0) return undefined;
    return startWorker({
      ...this.#options,
      name: worker,
      desk: this.#desk,
      sealed,
      recorder: recorder ?? bookRecorder(),
      onReceipt: (receipt) => this.#receipts.note(receipt),
      signal: this.#stop.signal,
      cancelled: this.#cancelled,
    });
  }

  /** Reads ends from the queue until every rollout has one, or the launch is stopped, or its worker gives up. */
  async #follow(from: number): Promise<void> {
    const { queue } = this.#options;
    const watch = queue.watch();
    const stopped = new Promise<void>((resolve) => {
      this.#stop.signal.addEventListener("abort", () => resolve(), { once: true });
    });
    let cursor = from;
    let gaveUp: { error: unknown } | undefined;
    this.#worker?.ended.catch((error: unknown) => {
      gaveUp = { error };
      this.#stop.abort();
    });
    while (this.#left > 0 && gaveUp === undefined) {
      const page = await queue.settled(cursor, 1000);
      cursor = page.at(-1)?.cursor ?? cursor;
      await this.#settle(page, false);
      if (this.#stop.signal.aborted) break;
      if (page.length === 0) await Promise.race([watch.changed(LOOK_MS), stopped]);
    }
    if (gaveUp !== undefined) throw gaveUp.error;
  }

  get #left(): number {
    const { done, dead, total } = this.#tally.now();
    return total - done - dead;
  }

  async #settle(items: readonly SettledItem[], earlier: boolean): Promise<void> {
    const read: { slot: Slot; result: ReadResult }[] = [];
    for (const item of items) {
      const slot = this.#slots.get(item.item);
      if (slot === undefined || slot.settled) continue;
      slot.settled = true;
      read.push({
        slot,
        result: await readResult(this.#options.book, slot.planned, { ...item, earlier }),
      });
    }
    const done = read.flatMap(({ slot, result }) =>
      result.state === "sealed" ? [{ item: slot.planned.id, content: result.content, earlier }] : [],
    );
    const receipts = await this.#receipts.of(done);
    for (const { slot, result } of read)
      this.#tell(
        slot,
        result.state === "sealed" ? { ...result, receipt: receipts.get(result.content)! } : result,
      );
  }

  #tell(slot: Slot, result: RolloutResult): void {
    slot.told = true;
    this.#tally.add(result);
    slot.resolve(result);
    this.#results.push(result);
    this.#wake();
  }

  #addSlot(planned: PlannedRollout): void {
    const { promise, resolve, reject } = deferred<RolloutResult>();
    promise.catch(() => {}); // told to whoever asks for the result
    this.#slots.set(planned.id, { planned, promise, resolve, reject, settled: false, told: false });
    this.#tally.total = this.#slots.size;
  }

  #end(ended: { error?: unknown }): void {
    this.#ended = ended;
    for (const { planned, told, reject } of this.#slots.values())
      if (!told) reject(ended.error ?? cancelledError(planned.id));
    this.#wake();
  }

  #future(slot: Slot): RolloutFuture {
    const { planned, promise } = slot;
    return {
      ...{ id: planned.id, row: planned.row, sample: planned.sample },
      done: () => slot.told,
      elapsedMs: () => this.#options.clock.nowMs() - this.#startMs,
      result: (timeoutMs) =>
        timeoutMs === undefined ? promise : withTimeout(promise, timeoutMs, planned.id),
      cancel: () => {
        if (slot.told) return;
        this.#cancelled.add(planned.id);
        this.#worker?.cancel(planned.id);
      },
    };
  }
}

/** The desk of this process: its workers come here, those of other processes have their own over the same queue. */
function deskOf({ queue, book, clock, signer, trusts, admit, worker }: LaunchOptions): WorkerDesk {
  let sessions = 0;
  return makeDesk({
    ...{ queue, book, clock, signer, admit },
    trusts: (key) => key === signer.publicKey || trusts?.(key) === true,
    newSession: () => `${worker}-${sessions++}`,
  });
}

function deferred<T>(): Deferred<T> {
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
      `${id} has not ended after ${timeoutMs} ms.`,
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
