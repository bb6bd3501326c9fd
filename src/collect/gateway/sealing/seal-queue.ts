/** Has rollouts sealed by a thread of its own, so that the one that serves does not. In: rollouts in which nothing happens
 *  any more. Out: reports, once the artifacts are durable. The thread is started when there is something to do, and
 *  again when it has died; what it had not answered is sent to the next one. Signs, admits and journals closings when
 *  the thread asks for it; the book is written by the thread, and read there for those who name a record of it: the
 *  first look into a large book takes a while. */
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
  /** Where the journal is. */
  readonly directory: string;
  readonly signer?: Signer | undefined;
  readonly admit?: Admit | undefined;
  readonly clock: Clock;
  /** For failures that no caller gets. */
  readonly log: (line: string) => void;
  /** The thread has died and will be started again. */
  readonly onDeath?: (() => void) | undefined;
  readonly start?: ((root: string) => Worker) | undefined;
  /** Where the thread stays when this queue is closed, and where one may be. */
  readonly keptThread?: KeptThread | undefined;
}

/** A rollout to seal. */
export interface ToSeal {
  readonly task: Omit<SealTask, "number" | "isRaw">;
  /** The journal has noted how it is closed. */
  readonly onJournaled: (place: LogPlace) => void;
}

interface WaitingTask extends ToSeal {
  /** As it was sent to a thread first. */
  sent: SealTask | undefined;
  readonly done: (report: SealReport) => void;
  readonly failed: (error: Error) => void;
  /** Threads that died while they had it. */
  deaths: number;
}

/** A request about the book that has no answer yet. */
interface OpenRequest {
  readonly request: BookRequest;
  readonly done: (held: readonly (HeldBlob | null)[]) => void;
  readonly failed: (error: Error) => void;
  isSent: boolean;
}

/** So many rollouts are with the thread at a time: enough for a commit and the next. The others wait here, where those
 *  that somebody waits for can go first. */
const MOST_AT_THREAD = 256;
/** Rollouts without a waiting client are gathered for this long. */
const SEND_DELAY_MS = 10;
/** A rollout that was there when so many threads died is perhaps why. */
const DEATHS_PER_TASK = 3;
/** After so many deaths in a row, with nothing sealed in between, sealing is said not to work. */
const DEATHS_IN_A_ROW = 5;
const OUT_OF_MEMORY = "ERR_WORKER_OUT_OF_MEMORY";
const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 30_000;

export class SealQueue {
  readonly #deps: SealQueueOptions;
  /** Not sent to the thread yet: those that somebody waits for, and the others. */
  readonly #urgent: WaitingTask[] = [];
  readonly #others: WaitingTask[] = [];
  /** Sent to the thread and not answered, by number. */
  readonly #atThread = new Map<number, WaitingTask>();
  readonly #requests = new Map<number, OpenRequest>();
  #thread: Worker | undefined;
  /** The thread has closed the book. */
  #onClosed = () => {};
  #numbers = 0;
  /** Rollouts that come in one turn of the event loop go in one message; those without a waiting client, in a few ms. */
  readonly #sending = new GroupCommit({
    commit: async () => this.#sendTasks(),
    gather: (start) => setImmediate(start),
  });
  readonly #sendWaiter = { durable() {}, lost: (error: unknown) => this.#onSendFailure(error) };
  #deathsInARow = 0;
  /** A thread died for want of memory: rollouts are sent one by one, until none is left, to find which one needs it. */
  #isCareful = false;
  #pause: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(options: SealQueueOptions) {
    this.#deps = options;
  }

  /** How many rollouts wait to be sealed. */
  get waiting(): number {
    return this.#urgent.length + this.#others.length + this.#atThread.size;
  }

  /** False if threads die as soon as they are started. */
  get isWorking(): boolean {
    return this.#deathsInARow < DEATHS_IN_A_ROW;
  }

  /** Resolves when the artifact is durable. The journal must have on disk what the task names. */
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

  /** What the book holds under these digests, in their order. */
  look(digests: readonly Digest[]): Promise<readonly (HeldBlob | null)[]> {
    return this.#request({ kind: "look", digests });
  }

  /** Resolves when the catalog knows everything that was sealed before. */
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

  /** Seals nothing more, at once: what has no answer is refused, and stays in the journal. */
  async abandon(): Promise<void> {
    const thread = this.#thread;
    this.#refuseAll();
    this.#thread = undefined;
    await thread?.terminate();
  }

  /** Ends the thread, and takes nothing more. To have everything sealed, wait for the answers first: what has none
   *  is refused. */
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

  /** Rollouts could not be sent: no thread starts, or it does not take them. */
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
    // A head is signed for a thread that is closing, too: it waits for the signature before it ends.
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

  /** The thread has died: the next one goes on, after a pause that grows. */
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
      // Reading its calls takes more memory than there is: the next try only keeps them.
      if (this.#isCareful && again.length === 1) each.sent = { ...each.sent!, isRaw: true };
    }
    // The caller may ask again.
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

  /** The thread is started when there is something for it. */
  #send(message: ToSealing): void {
    this.#thread ??= this.#startThread();
    this.#thread.ref();
    this.#thread.postMessage(message);
  }
}

/** Deliveries are noted up to now: a task that is sent twice must make the same artifact. Copied by hand, because it runs for every
 *  rollout, and a spread that replaces a field takes V8's slow path. */
function numbered(task: ToSeal["task"], number: number): SealTask {
  const { isUrgent, events, calls, marks, capped, ending, scores, finalState, endedAtMs } = task;
  const noted = marks.slice();
  return { number, isUrgent, events, calls, marks: noted, capped, ending, scores, finalState, endedAtMs };
}

/** The environment holds keys; the thread gets those of the bucket, if the book is in one, and no others. */
export function startSealWorker(root: string): Worker {
  return startThread(import.meta.url, "seal-worker", {
    ...{ name: "rollbook-sealing", env: bucketEnvironment(root) },
    // What a group of rollouts needs lives until its commit: with room for it, the collector has a sixth less to do.
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
