/** The thread that seals rollouts. In: rollouts by their places in the journal. Out: artifacts in the book, by its
 *  own writer session, with an answer for each; and blobs of the book by digest. Asks the serving thread for
 *  signatures and verdicts. An error of one rollout is its answer. An error of the session ends the thread, because
 *  the session guarantees nothing after it. */
import { type MessagePort, parentPort } from "node:worker_threads";
import { type Digest, isRollbookError, manualClock } from "../../../base/index.ts";
import type { SealedBlob, UnsignedHead } from "../../../contract/index.ts";
import { type Book, GroupCommit, openBook, openCatalog } from "../../../store/index.ts";
import { JournalReader } from "../journal/index.ts";
import { ArtifactSealer } from "./artifact-sealer.ts";
import {
  type AdmittedArtifact,
  errorOf,
  type FromSealing,
  failureOf,
  type HeldBlob,
  type SealAnswer,
  type SealingData,
  type SealTask,
  type ToSealing,
  type WorkerQuestion,
} from "./thread-protocol.ts";

/** A lost answer would leave the serving thread waiting. So this thread ends, and another one gets the work. */
const ANSWERED = {
  durable() {},
  lost(error: unknown) {
    throw error;
  },
};

/** Errors after which the session accepts nothing more. No rollout is at fault: another thread begins a new session. */
const SESSION_ENDS = ["write-failed", "session-failed", "session-replaced", "bucket-failed"];

class SealWorker {
  readonly #data: SealingData;
  readonly #port: MessagePort;
  readonly #book: Book;
  readonly #journal: JournalReader;
  readonly #sealer: ArtifactSealer;
  readonly #waiting: SealTask[] = [];
  #isWorking = false;
  #answers: SealAnswer[] = [];
  /** Answers to the rollouts of one commit are sent together. */
  readonly #answering = new GroupCommit({
    commit: async () => this.#answer(),
    gather: (start) => setImmediate(start),
  });
  readonly #asked = new Map<number, { done: (value: never) => void; failed: (error: Error) => void }>();
  #questions = 0;

  constructor(port: MessagePort, book: Book, data: SealingData) {
    const { journal, gatewayName, signer, hasAdmission, readMs } = data;
    this.#data = data;
    this.#port = port;
    this.#book = book;
    this.#journal = new JournalReader(journal);
    this.#sealer = new ArtifactSealer({
      ...{ store: book, journal: this.#journal, gatewayName, readMs },
      steadyMs: () => performance.now(),
      signer,
      commit: (closings, attestations) => this.#ask<string[]>({ kind: "commit", closings, attestations }),
      admit: hasAdmission
        ? (artifact) => this.#ask<AdmittedArtifact>({ kind: "admit", artifact })
        : undefined,
    });
  }

  hear(message: Exclude<ToSealing, { kind: "open" }>): void {
    switch (message.kind) {
      case "seal":
        this.#waiting.push(...message.tasks);
        if (!this.#isWorking) void this.#work();
        return;
      case "request":
        void this.#serve(message);
        return;
      case "reply":
        this.#hearReply(message);
        return;
      case "close":
        void this.#close(message.isKept);
        return;
      default:
        message satisfies never;
    }
  }

  async #serve({ number, request }: Extract<ToSealing, { kind: "request" }>): Promise<void> {
    try {
      const held = request.kind === "look" ? await this.#look(request.digests) : await this.#sync();
      this.#send({ kind: "answer", number, held });
    } catch (error) {
      this.#send({ kind: "answer", number, failure: failureOf(error) });
    }
  }

  async #look(digests: readonly Digest[]): Promise<(HeldBlob | null)[]> {
    const held: (HeldBlob | null)[] = [];
    for (const digest of digests) {
      const blob = await this.#book.get(digest);
      held.push(blob === undefined ? null : { kind: blob.kind, bytes: new Uint8Array(blob.bytes) });
    }
    return held;
  }

  async #sync(): Promise<[]> {
    const catalog = openCatalog(this.#data.root);
    try {
      await catalog.sync();
    } finally {
      catalog.close();
    }
    return [];
  }

  /** Begins one rollout per turn of the event loop, so that replies and commits get their turns. */
  async #work(): Promise<void> {
    this.#isWorking = true;
    for (let task = this.#waiting.shift(); task !== undefined; task = this.#waiting.shift()) {
      void this.#seal(task);
      await new Promise(setImmediate);
    }
    this.#isWorking = false;
  }

  async #seal(task: SealTask): Promise<void> {
    const { number } = task;
    try {
      const report = await this.#sealer.seal(task);
      this.#answers.push({ number, report });
    } catch (error) {
      if (SESSION_ENDS.some((code) => isRollbookError(error, code))) throw error;
      this.#answers.push({ number, failure: failureOf(error) });
    }
    this.#answering.add();
    this.#answering.whenDurable(ANSWERED);
  }

  #answer(): void {
    this.#send({ kind: "sealed", answers: this.#answers });
    this.#answers = [];
    // Answered entries may be deleted from the disk, so this thread must not keep their files open.
    if (!this.#isWorking) this.#journal.close();
  }

  #ask<T>(question: WorkerQuestion): Promise<T> {
    return new Promise((done, failed) => {
      const number = this.#questions++;
      this.#asked.set(number, { done, failed });
      this.#send({ kind: "ask", number, question });
    });
  }

  signHead(head: UnsignedHead): Promise<SealedBlob> {
    return this.#ask({ kind: "head", head });
  }

  #hearReply(message: Extract<ToSealing, { kind: "reply" }>): void {
    const { done, failed } = this.#asked.get(message.number)!;
    this.#asked.delete(message.number);
    if ("value" in message) done(message.value as never);
    else failed(errorOf(message.failure));
  }

  async #close(isKept: boolean): Promise<void> {
    this.#journal.close();
    await this.#book.close();
    if (isKept) this.#send({ kind: "closed" });
    else this.#port.close();
  }

  #send(message: FromSealing): void {
    this.#port.postMessage(message);
  }
}

const port = parentPort!;
let worker: Promise<SealWorker>;
port.on("message", (message: ToSealing) => {
  if (message.kind === "open") worker = open(message.data);
  else void worker.then((thread) => thread.hear(message));
});

async function open(data: SealingData): Promise<SealWorker> {
  let thread: SealWorker;
  const sign = () => (data.signer === undefined ? undefined : (head: UnsignedHead) => thread.signHead(head));
  const book = await openBook(data.root, { clock: manualClock(data.startedAtMs), sign });
  thread = new SealWorker(port, book, data);
  return thread;
}
