/** Has rollouts sealed by a separate thread, to keep the load off the serving thread. In: finished rollouts. Out:
 *  reports, once the artifacts are durable. The thread starts when there is work, and again after it died;
 *  unanswered work goes to the next thread. Signs, admits and journals closings when the thread asks. Does not write
 *  the book: the thread does. The thread also reads the book for openings that name records, because the first read
 *  in a large book is slow. */
import type { Worker } from "node:worker_threads";
import { type Clock, type Digest, RollbookError, reasonOf } from "../../../base/index.ts";
import type { Signer } from "../../../contract/index.ts";
import { bucketEnvironment, GroupCommit } from "../../../store/index.ts";
import type { KeptThread } from "../../kept-thread.ts";
import type { Admit } from "../../receipt.ts";
import { startThread } from "../../start-thread.ts";
import { type Journal, type LogPlace, SOON_MS } from "../journal/index.ts";
import {
  type AdmittedArtifact,
  type BookRequest,
  detached,
  errorOf,
  type FromSealing,
  failureOf,
  type HeldBlob,
  type SealAnswer,
  type SealingData,
  type SealReport,
  type SealTask,
  type ToSealing,
  type WorkerQuestion,
} from "./thread-protocol.ts";

export interface SealQueueOptions extends Pick<SealingData, "root" | "gatewayName" | "readMs"> {
  readonly journal: Journal;
  /** Directory of the journal. */
  readonly directory: string;
  readonly signer?: Signer | undefined;
  readonly admit?: Admit | undefined;
  readonly clock: Clock;
  /** Receives failures that no caller gets. */
  readonly log: (line: string) => void;
  /** Called after the thread died. It will be started again. */
  readonly onDeath?: (() => void) | undefined;
  readonly start?: ((root: string) => Worker) | undefined;
  /** Keeps the thread when this queue is closed, and may supply one at the start. */
  readonly keptThread?: KeptThread | undefined;
}

/** A rollout to seal. */
export interface ToSeal {
  readonly task: Omit<SealTask, "number" | "isRaw">;
  /** Called when the closing is in the journal. */
  readonly onJournaled: (place: LogPlace) => void;
}

interface WaitingTask extends ToSeal {
  /** The task as it was first sent to a thread. */
  sent: SealTask | undefined;
  readonly done: (report: SealReport) => void;
  readonly failed: (error: Error) => void;
  /** Number of threads that died while they had the task. */
  deaths: number;
}

/** A request about the book without an answer yet. */
interface OpenRequest {
  readonly request: BookRequest;
  readonly done: (held: readonly (HeldBlob | null)[]) => void;
  readonly failed: (error: Error) => void;
  isSent: boolean;
}

/** Maximum number of rollouts at the thread: enough for one commit and the next. The others wait here, so that
 *  urgent ones can go first. */
const MOST_AT_THREAD = 256;
/** Milliseconds to gather rollouts without a waiting client. */
const SEND_DELAY_MS = 10;
/** A rollout that was at this many dying threads may be the cause, so it fails. */
const DEATHS_PER_TASK = 3;
/** After this many consecutive deaths, without a sealed rollout between, sealing counts as broken. */
const DEATHS_IN_A_ROW = 5;
const OUT_OF_MEMORY = "ERR_WORKER_OUT_OF_MEMORY";
const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 30_000;

export class SealQueue {
  readonly #deps: SealQueueOptions;
  /** Not yet sent to the thread: rollouts with a waiting client, and all others. */
  readonly #urgent: WaitingTask[] = [];
  readonly #others: WaitingTask[] = [];
  /** Sent to the thread and not answered, by number. */
  readonly #atThread = new Map<number, WaitingTask>();
  readonly #requests = new Map<number, OpenRequest>();
  #thread: Worker | undefined;
  /** Called when the thread has closed the book. */
  #onClosed = () => {};
  #numbers = 0;
  /** Rollouts of one turn of the event loop go in one message. Those without a waiting client wait a few ms longer. */
  readonly #sending = new GroupCommit({
    commit: async () => this.#sendTasks(),
    gather: (start) => setImmediate(start),
  });
  readonly #sendWaiter = { durable() {}, lost: (error: unknown) => this.#onSendFailure(error) };
  #deathsInARow = 0;
  /** True after a thread ran out of memory. Rollouts are then sent one by one until none is left, to find the one
   *  that needs too much. */
  #isCareful = false;
  #pause: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(options: SealQueueOptions) {
    this.#deps = options;
  }

  /** Number of rollouts that wait to be sealed. */
  get waiting(): number {
    return this.#urgent.length + this.#others.length + this.#atThread.size;
  }

  /** False if threads die as soon as they are started. */
  get isWorking(): boolean {
    return this.#deathsInARow < DEATHS_IN_A_ROW;
  }

  /** Resolves when the artifact is durable. The journal entries of the task must already be on disk. */
  seal(toSeal: ToSeal): Promise<SealReport> {
    return new Promise((done, failed) => {
      if (this.#isClosed) return failed(closed());
      if (!this.isWorking && this.#pause !== undefined) return failed(broken());
      const { task, onJournaled } = toSeal;
      const list = task.isUrgent ? this.#urgent : this.#others;
      list.push({ task, onJournaled, sent: undefined, done, failed, deaths: 0 });
      this.#pause?.ref();
      this.#sending.add();
      this.#sending.whenDurable(this.#sendWaiter, task.isUrgent ? 0 : SEND_DELAY_MS);
    });
  }

  /** The blobs of the book with these digests, in their order. */
  look(digests: readonly Digest[]): Promise<readonly (HeldBlob | null)[]> {
    return this.#request({ kind: "look", digests });
  }

  /** Resolves when the catalog has everything that was sealed before. */
  async syncCatalog(): Promise<void> {
    await this.#request({ kind: "sync" });
  }

  #request(request: BookRequest): Promise<readonly (HeldBlob | null)[]> {
    return new Promise((done, failed) => {
      if (this.#isClosed) return failed(closed());
      if (!this.isWorking && this.#pause !== undefined) return failed(broken());
      this.#requests.set(this.#numbers++, { request, done, failed, isSent: false });
      this.#pause?.ref();
      this.#sendRequests();
    });
  }

  #sendRequests(): void {
    if (this.#pause !== undefined) return;
    for (const [number, each] of this.#requests) {
      if (each.isSent) continue;
      each.isSent = true;
      this.#send({ kind: "request", number, request: each.request });
    }
  }

  /** Stops sealing at once. Refuses all unanswered work, which stays in the journal. */
  async abandon(): Promise<void> {
    const thread = this.#thread;
    this.#refuseAll();
    this.#thread = undefined;
    await thread?.terminate();
  }

  /** Ends the thread and accepts nothing more. Refuses unanswered work: to have everything sealed, wait for the
   *  answers first. */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#pause);
    this.#pause = undefined;
    for (const each of [...this.#urgent.splice(0), ...this.#others.splice(0)]) each.failed(closed());
    const thread = this.#thread;
    this.#thread = undefined;
    if (thread !== undefined) await this.#end(thread);
    this.#refuseAll();
  }

  async #end(thread: Worker): Promise<void> {
    const { keptThread, root } = this.#deps;
    thread.ref();
    const isClosed = await new Promise<boolean>((done) => {
      this.#onClosed = () => done(true);
      thread.once("exit", () => done(false));
      thread.postMessage({ kind: "close", isKept: keptThread !== undefined } satisfies ToSealing);
    });
    if (isClosed) keptThread?.keep(root, thread);
  }

  #refuseAll(): void {
    this.#isClosed = true;
    clearTimeout(this.#pause);
    this.#pause = undefined;
    const waiting = [...this.#urgent.splice(0), ...this.#others.splice(0), ...this.#atThread.values()];
    for (const each of [...waiting, ...this.#requests.values()]) each.failed(closed());
    this.#atThread.clear();
    this.#requests.clear();
  }

  #sendTasks(): void {
    if (this.#pause !== undefined) return;
    const room = (this.#isCareful ? 1 : MOST_AT_THREAD) - this.#atThread.size;
    if (room <= 0) return;
    const next = this.#urgent.splice(0, room);
    if (next.length < room) next.push(...this.#others.splice(0, room - next.length));
    if (next.length === 0) return;
    for (const each of next) {
      each.sent ??= numbered(each.task, this.#numbers++);
      this.#atThread.set(each.sent.number, each);
    }
    this.#send({ kind: "seal", tasks: next.map(({ sent }) => sent!) });
  }

  /** Handles a failed send: no thread starts, or the thread does not accept the rollouts. */
  #onSendFailure(error: unknown): void {
    if (this.#thread !== undefined) {
      void this.#thread.terminate();
      return;
    }
    for (const each of this.#atThread.values()) each.failed(error as Error);
    this.#atThread.clear();
  }

  #startThread(): Worker {
    const { root, directory, gatewayName, readMs, signer, admit, clock } = this.#deps;
    const { start = startSealWorker, keptThread } = this.#deps;
    const thread = keptThread?.take(root) ?? start(root);
    const data: SealingData = {
      ...{ root, journal: directory, gatewayName, readMs, startedAtMs: clock.nowMs() },
      ...{ signer: signer?.publicKey, hasAdmission: admit !== undefined },
    };
    thread.postMessage({ kind: "open", data } satisfies ToSealing);
    let reason: unknown;
    thread
      .on("message", (message: FromSealing) => this.#onMessage(thread, message))
      .on("error", (error) => {
        reason = error;
      })
      .on("exit", () => this.#onExit(thread, reason));
    return thread;
  }

  #onMessage(thread: Worker, message: FromSealing): void {
    if (message.kind === "closed") {
      this.#onClosed();
      return;
    }
    // A closing thread also gets its head signed: it waits for the signature before it ends.
    const isHead = message.kind === "ask" && message.question.kind === "head";
    // Messages of an abandoned thread are ignored.
    if (!isHead && thread !== this.#thread && this.#atThread.size === 0 && this.#requests.size === 0) return;
    if (message.kind === "ask") {
      void this.#answer(thread, message);
      return;
    }
    if (message.kind === "answer") {
      const { done, failed } = this.#requests.get(message.number)!;
      this.#requests.delete(message.number);
      if ("failure" in message) failed(errorOf(message.failure));
      else done(message.held);
    } else for (const answer of message.answers) this.#settle(answer);
    if (this.#atThread.size === 0 && this.#requests.size === 0) thread.unref();
    if (this.waiting === 0) this.#isCareful = false;
    if (this.#atThread.size <= MOST_AT_THREAD / 2) this.#sendTasks();
  }

  #settle(answer: SealAnswer): void {
    const { done, failed } = this.#atThread.get(answer.number)!;
    this.#atThread.delete(answer.number);
    if ("failure" in answer) failed(errorOf(answer.failure));
    else {
      this.#deathsInARow = 0;
      done(answer.report);
    }
  }

  async #answer(thread: Worker, { number, question }: Extract<FromSealing, { kind: "ask" }>): Promise<void> {
    let reply: ToSealing;
    try {
      reply = { kind: "reply", number, value: await this.#valueFor(question) };
    } catch (error) {
      reply = { kind: "reply", number, failure: failureOf(error) };
    }
    thread.postMessage(reply);
  }

  async #valueFor(question: WorkerQuestion): Promise<Extract<ToSealing, { value: unknown }>["value"]> {
    const { admit, clock, signer } = this.#deps;
    switch (question.kind) {
      case "commit":
        return this.#commit(question);
      case "admit": {
        const atMs = clock.nowMs();
        const { outcome, signals, message, records } = await admit!({ ...question.artifact, nowMs: atMs });
        const admission = { outcome, signals, message, records: records?.map(detached) };
        return { admission, atMs } as AdmittedArtifact;
      }
      case "head":
        return detached(signer!.signHead({ ...question.head, atMs: clock.nowMs() }));
      default:
        return question satisfies never;
    }
  }

  async #commit({
    closings,
    attestations,
  }: Extract<WorkerQuestion, { kind: "commit" }>): Promise<readonly string[]> {
    const { journal, signer } = this.#deps;
    let isUrgent = false;
    for (const { number, event } of closings) {
      const waiting = this.#atThread.get(number)!;
      waiting.onJournaled(journal.written(event));
      isUrgent ||= waiting.task.isUrgent;
    }
    const signing = Promise.all(attestations.map((text) => signer!.signAside(text)));
    const [signatures] = await Promise.all([signing, journal.flush(isUrgent ? 0 : SOON_MS)]);
    return signatures;
  }

  /** Handles the death of the thread: after a growing pause, the next thread continues. */
  #onExit(thread: Worker, reason: unknown): void {
    if (this.#thread !== thread) {
      if (reason !== undefined) this.#deps.log(`the sealing thread ended with an error: ${reasonOf(reason)}`);
      return;
    }
    this.#thread = undefined;
    this.#deathsInARow++;
    this.#deps.onDeath?.();
    const why = reason === undefined ? "it ended" : reasonOf(reason);
    this.#deps.log(`the sealing thread died (${why}); ${this.#atThread.size} rollouts are tried again`);
    const error = new RollbookError("sealing-died", {}, `the sealing thread died: ${why}.`, {
      cause: reason,
    });
    const again = [...this.#atThread.values()];
    this.#atThread.clear();
    if ((reason as NodeJS.ErrnoException | undefined)?.code === OUT_OF_MEMORY) this.#isCareful = true;
    for (const each of again.reverse()) {
      if (++each.deaths >= DEATHS_PER_TASK) each.failed(error);
      else this.#urgent.unshift(each);
      // Reading the calls of this rollout takes too much memory. The next attempt stores them unread.
      if (this.#isCareful && again.length === 1) each.sent = { ...each.sent!, isRaw: true };
    }
    // The caller may retry.
    for (const { failed } of this.#requests.values()) failed(error);
    this.#requests.clear();
    if (!this.isWorking)
      for (const each of [...this.#urgent.splice(0), ...this.#others.splice(0)]) each.failed(error);
    const pauseMs = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (this.#deathsInARow - 1));
    this.#pause = setTimeout(() => {
      this.#pause = undefined;
      this.#sendTasks();
      this.#sendRequests();
    }, pauseMs);
    if (this.waiting === 0) this.#pause.unref();
  }

  /** Starts the thread if it is not running. */
  #send(message: ToSealing): void {
    this.#thread ??= this.#startThread();
    this.#thread.ref();
    this.#thread.postMessage(message);
  }
}

/** Copies the delivery marks as of now: a task that is sent twice must make the same artifact. Copies by hand,
 *  because this runs for every rollout, and a spread that replaces a field takes V8's slow path. */
function numbered(task: ToSeal["task"], number: number): SealTask {
  const { isUrgent, events, calls, marks, capped, ending, scores, finalState, endedAtMs } = task;
  const noted = marks.slice();
  return { number, isUrgent, events, calls, marks: noted, capped, ending, scores, finalState, endedAtMs };
}

/** The environment holds keys. The thread gets only those of the bucket, if the book is in a bucket. */
export function startSealWorker(root: string): Worker {
  return startThread(import.meta.url, "seal-worker", {
    ...{ name: "rollbook-sealing", env: bucketEnvironment(root) },
    // Objects of a group of rollouts live until its commit. With room for them, the garbage collector has a sixth less
    // work.
    resourceLimits: { maxYoungGenerationSizeMb: 96 },
  });
}

function closed(): RollbookError {
  return new RollbookError(
    "sealing-closed",
    {},
    "the gateway is being stopped and seals nothing more. The rollout is in the journal: the next start takes it up.",
  );
}

function broken(): RollbookError {
  return new RollbookError(
    "sealing-broken",
    {},
    "the sealing thread dies whenever it is started; the log says why. The rollout stays open and is tried again.",
  );
}
