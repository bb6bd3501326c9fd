/** Launches rollouts: rows × samples, durable, resumable, in completion order.
 *  In: rows, an agent, a book, a queue. Out: results, by iteration or by future. Work begins at once. Leaving the
 *  iteration early cancels the rollouts that run here and releases their claims. The same launch again runs only the
 *  missing rollouts: ids follow from content, the queue knows the done items, the book the sealed ones. Does not parse
 *  files or print. */
import type { Clock, Id, Rng } from "../../../base/index.ts";
import type { Ending, PublicKey, Signer } from "../../../contract/index.ts";
import type { Book } from "../../../store/index.ts";
import type { SettledItem, WorkQueue } from "../../queue/index.ts";
import type { Admit } from "../../receipt.ts";
import { bookRecorder, type Recorder } from "../record/index.ts";
import {
  type Attempts,
  makeWorkerServer,
  openSealedIndex,
  type PlannedRollout,
  RecentRecords,
  type SealedIndex,
  startWorker,
  type Worker,
  type WorkerServer,
} from "../worker/index.ts";
import { type EnqueueOptions, enqueueRows } from "./enqueue-rows.ts";
import { deferred, futureOf, type RolloutFuture, type RolloutSlot, Slots } from "./futures.ts";
import { LaunchTally, type Progress } from "./progress.ts";
import { Receipts } from "./receipts.ts";
import { type ReadResult, type RepeatedSample, type RolloutResult, readResult } from "./result.ts";

export interface LaunchOptions extends EnqueueOptions {
  readonly book: Book;
  readonly queue: WorkQueue;
  readonly clock: Clock;
  readonly rng: Rng;
  readonly worker: Id;
  /** Signs assignments, the uploads of this process, and receipts. */
  readonly signer: Signer;
  /** Accepts keys besides our own: those of workers that died, and of gateways. */
  readonly trusts?: (key: PublicKey) => boolean;
  /** Judges every rollout when it is uploaded. */
  readonly admit?: Admit;
  /** Shared with other readers of the same records (default: a new cache). */
  readonly records?: RecentRecords | undefined;
  /** Records the rollouts (default: the book's recorder). */
  readonly recorder?: Recorder;
  /** Last result of a failed sample that another launch ran again. Undefined: the sample was not run again. */
  readonly rerun?: (rollout: PlannedRollout) => Promise<RepeatedSample | undefined>;
  /** Number of concurrent rollouts in this process. 0: only other processes work. */
  readonly concurrency: number;
  /** Called at the end of each attempt in this process. */
  readonly onAttempt?: ((item: string, ending: Ending) => void) | undefined;
  readonly attempts?: Partial<Attempts>;
  readonly retryBaseMs?: number;
  readonly heartbeatMs?: number;
  readonly rate?: number;
  /** Time after its start at which the launch ends, finished or not. */
  readonly deadlineMs?: number;
  readonly signal?: AbortSignal;
  /** Once aborted, no more rollouts begin, and the launch ends when the rollouts here are done. */
  readonly drain?: AbortSignal | undefined;
}

export interface Launch extends AsyncIterable<RolloutResult> {
  /** Resolves after enqueueing, with one future per rollout, by row first. */
  futures(): Promise<readonly RolloutFuture[]>;
  progress(): Progress;
  /** Settles when no rollout runs here any more. Rejects if the launch failed. */
  readonly ended: Promise<void>;
  /** Stops the rollouts that run here and releases their claims. Resolves when no claim is held any more. */
  cancel(): Promise<void>;
}

export function launch(rows: Iterable<unknown> | AsyncIterable<unknown>, options: LaunchOptions): Launch {
  return new RunningLaunch(rows, options);
}

const LOOK_MS = 500;

class RunningLaunch implements Launch {
  readonly #options: LaunchOptions;
  readonly #tally: LaunchTally;
  readonly #startMs: number;
  readonly #stop = new AbortController();
  readonly #slots = new Slots();
  readonly #cancelled = new Set<string>();
  readonly #results: RolloutResult[] = [];
  readonly #planned: Promise<void>;
  readonly #over: Promise<void>;
  readonly #server: WorkerServer;
  readonly #records: RecentRecords;
  #receipts!: Receipts;
  #sealed!: SealedIndex;
  #worker: Worker | undefined;
  #wake: () => void = () => {};
  #ended: { error?: unknown } | undefined;

  constructor(rows: Iterable<unknown> | AsyncIterable<unknown>, options: LaunchOptions) {
    this.#options = options;
    this.#tally = new LaunchTally(options.clock);
    this.#records = options.records ?? new RecentRecords(options.book);
    this.#server = serverOf(options, this.#records);
    this.#startMs = options.clock.nowMs();
    const planned = deferred<void>();
    this.#planned = planned.promise;
    this.#planned.catch(() => {}); // futures() and the iteration get the error
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
    return [...this.#slots].map((slot) => this.#future(slot));
  }

  progress(): Progress {
    return this.#tally.now();
  }

  /** Each caller gets its own promise, so a failure that no caller asks for is not an unhandled rejection. */
  get ended(): Promise<void> {
    return this.#over.then(() => {
      if (this.#ended?.error !== undefined) throw this.#ended.error;
    });
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
    try {
      const { book, recorder } = this.#options;
      await recorder?.checkBook?.(book);
      const sealed = await openSealedIndex(book.root);
      try {
        await this.#collect(rows, sealed, planned);
      } finally {
        stop();
        await this.#worker?.ended.finally(() => sealed.close());
        if (this.#worker === undefined) await sealed.close();
      }
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener("abort", stop);
    }
  }

  async #collect(
    rows: Iterable<unknown> | AsyncIterable<unknown>,
    sealed: SealedIndex,
    planned: () => void,
  ): Promise<void> {
    this.#receipts = new Receipts(sealed, this.#server);
    this.#sealed = sealed;
    const cursor = await this.#readEarlier();
    await enqueueRows(rows, this.#options, {
      signal: this.#stop.signal,
      onRollout: (rollout) => {
        this.#slots.add(rollout);
        this.#tally.total = this.#slots.size;
      },
      records: this.#records,
    });
    planned();
    await this.#revive();
    await this.#sayClaimed();
    this.#worker = this.#startWorker(sealed);
    await this.#follow(cursor);
  }

  readonly #earlier = new Map<string, SettledItem>();

  /** Reads the items that earlier runs settled, before an item of this run can settle. */
  async #readEarlier(): Promise<number> {
    let cursor = 0;
    for (;;) {
      const page = await this.#options.queue.settled(cursor, 1000);
      for (const item of page) this.#earlier.set(item.item, item);
      if (page.length === 0) return cursor;
      cursor = page.at(-1)!.cursor;
    }
  }

  /** The same command again runs the missing rollouts. Items that were set aside count as missing. */
  async #revive(): Promise<void> {
    const ours = [...this.#earlier.values()].filter(({ item }) => this.#slots.has(item));
    const dead = ours.filter(({ state }) => state === "dead").map(({ item }) => item);
    if (dead.length > 0) await this.#options.queue.revive(dead);
    await this.#settle(
      ours.filter(({ state }) => state === "done"),
      true,
    );
  }

  /** A killed worker keeps its claims until they expire. Without this message the launch would seem to hang. */
  async #sayClaimed(): Promise<void> {
    const { queue, clock, log = () => {} } = this.#options;
    if ((await queue.counts()).claimed === 0) return;
    const states = await Promise.all([...this.#slots].map(({ planned }) => queue.state(planned.id)));
    const expiries = states.flatMap((state) => (state?.state === "claimed" ? [state.expiresAtMs] : []));
    if (expiries.length === 0) return;
    const lastMs = expiries.reduce((last, each) => Math.max(last, each), 0);
    this.#tally.claimedUntilMs = lastMs;
    const seconds = Math.max(0, Math.ceil((lastMs - clock.nowMs()) / 1000));
    log(
      `${expiries.length === 1 ? "1 rollout is claimed by another worker" : `${expiries.length} rollouts are claimed by other workers`}. A claim whose worker died expires within ${seconds} s; then its rollout runs again.`,
    );
  }

  #startWorker(sealed: SealedIndex): Worker | undefined {
    const { concurrency, worker, recorder } = this.#options;
    if (concurrency === 0) return undefined;
    return startWorker({
      ...this.#options,
      name: worker,
      server: this.#server,
      records: this.#records,
      sealed,
      recorder: recorder ?? bookRecorder(),
      onReceipt: (receipt) => this.#receipts.note(receipt),
      signal: this.#stop.signal,
      cancelled: this.#cancelled,
    });
  }

  /** Reads settled items from the queue until every rollout has an end, the launch is stopped, or its worker fails. */
  async #follow(from: number): Promise<void> {
    const { queue } = this.#options;
    const watch = queue.watch();
    const stopped = new Promise<void>((resolve) => {
      this.#stop.signal.addEventListener("abort", () => resolve(), { once: true });
    });
    let cursor = from;
    let gaveUp: { error: unknown } | undefined;
    this.#worker?.ended
      .catch((error: unknown) => {
        gaveUp = { error };
      })
      .finally(() => this.#stop.abort());
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
    const read: { slot: RolloutSlot; result: ReadResult }[] = [];
    for (const item of items) {
      const slot = this.#slots.get(item.item);
      if (slot === undefined || slot.settled) continue;
      slot.settled = true;
      read.push({ slot, result: await this.#read(slot.planned, { ...item, earlier }) });
    }
    const done = read.flatMap(({ slot, result }) =>
      result.state === "sealed"
        ? [
            {
              ...{ item: slot.planned.id, content: result.content, earlier },
              own: this.#worker !== undefined && result.worker === this.#options.worker,
            },
          ]
        : [],
    );
    const receipts = await this.#receipts.of(done);
    for (const { slot, result } of read)
      this.#tell(
        slot,
        result.state === "sealed" ? { ...result, receipt: receipts.get(result.content)! } : result,
      );
  }

  /** For a failed sample that ran again, returns the later result: `--retry` and reports of the experiment count it. */
  async #read(planned: PlannedRollout, settled: SettledItem & { earlier: boolean }): Promise<ReadResult> {
    const { rerun, recorder } = this.#options;
    const contentsOf = (item: string, claims: number) =>
      this.#sealed.contents(recorder?.namesOf?.(item, claims) ?? [item]);
    const result = await readResult(this.#records, planned, { ...settled, contentsOf });
    if (!settled.earlier || result.state !== "sealed" || result.ending.kind !== "failed") return result;
    const last = await rerun?.(planned);
    if (last === undefined || settled.state !== "done") return result;
    const { envelope, ...of } = last;
    return readResult(this.#records, { ...planned, ...of }, { ...settled, result: envelope, contentsOf });
  }

  #tell(slot: RolloutSlot, result: RolloutResult): void {
    slot.told = true;
    this.#tally.add(result);
    slot.resolve(result);
    this.#results.push(result);
    this.#wake();
  }

  #end(ended: { error?: unknown }): void {
    this.#ended = ended;
    this.#slots.reject(ended.error);
    this.#wake();
  }

  #future(slot: RolloutSlot): RolloutFuture {
    return futureOf(slot, {
      elapsedMs: () => this.#options.clock.nowMs() - this.#startMs,
      cancel: (id) => {
        this.#cancelled.add(id);
        this.#worker?.cancel(id);
      },
    });
  }
}

/** The worker server of this process, for its own workers. Other processes have a server over the same queue. */
function serverOf(options: LaunchOptions, records: RecentRecords): WorkerServer {
  const { queue, book, clock, signer, trusts, admit, worker, recorder } = options;
  // No transport leads to this server, so a counter gives names that no other worker can have.
  let sessions = 0;
  return makeWorkerServer({
    ...{ queue, book, clock, signer, admit, records, sealedHere: recorder?.sealedHere },
    trusts: (key) => key === signer.publicKey || trusts?.(key) === true,
    newSession: () => `${worker}-${sessions++}`,
  });
}
