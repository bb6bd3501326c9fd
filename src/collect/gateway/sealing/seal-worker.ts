/** The thread in which rollouts are sealed. In: rollouts by their places in the journal. Out: artifacts in the book, by a
 *  writer session of its own, and what became of each; and what the book holds under a digest. Asks the serving thread for signatures and verdicts. An error
 *  of one rollout is its answer; an error of the session ends the thread, because nothing is promised after it. */
import { type MessagePort, parentPort, workerData } from "node:worker_threads";
import { isRollbookError, manualClock } from "../../../base/index.ts";
import { Assignment, type SealedBlob } from "../../../contract/index.ts";
import { type Book, openBook } from "../../../store/index.ts";
import { ClosedWriter, JournalReader } from "../journal/index.ts";
import { type Closed, Closer } from "./artifact-sealer.ts";
import {
  errorOf,
  type FromSealing,
  failureOf,
  type HeldBlob,
  type Judged,
  type Question,
  type SealAnswer,
  type SealingData,
  type SealTask,
  type ToSealing,
} from "./messages.ts";

class SealingThread {
  readonly #data: SealingData;
  readonly #port: MessagePort;
  readonly #book: Book;
  readonly #journal: JournalReader;
  readonly #closer: Closer;
  readonly #waiting: SealTask[] = [];
  #isWorking = false;
  /** Sealed in this turn, and what could not be. */
  #sealed: (Closed & { readonly number: number })[] = [];
  #answers: SealAnswer[] = [];
  #answering: NodeJS.Immediate | undefined;
  #names: ClosedWriter | undefined;
  readonly #asked = new Map<number, { done: (value: never) => void; failed: (error: Error) => void }>();
  #questions = 0;

  constructor(port: MessagePort, book: Book, data: SealingData) {
    const { journal, worker, signer, isJudged } = data;
    this.#data = data;
    this.#port = port;
    this.#book = book;
    this.#journal = new JournalReader(journal);
    this.#closer = new Closer({
      ...{ store: book, journal: this.#journal, worker },
      signer,
      commit: (closings, subjects) => this.#ask<SealedBlob[]>({ kind: "commit", closings, subjects }),
      judge: isJudged ? (artifact) => this.#ask<Judged>({ kind: "judge", artifact }) : undefined,
    });
  }

  hear(message: ToSealing): void {
    switch (message.kind) {
      case "seal":
        this.#waiting.push(...message.tasks);
        if (!this.#isWorking) void this.#work();
        return;
      case "look":
        void this.#look(message);
        return;
      case "reply":
        this.#hearReply(message);
        return;
      case "close":
        void this.#close();
        return;
      default:
        message satisfies never;
    }
  }

  async #look({ number, digests }: Extract<ToSealing, { kind: "look" }>): Promise<void> {
    try {
      const held: (HeldBlob | null)[] = [];
      for (const digest of digests) {
        const blob = await this.#book.get(digest);
        if (blob?.kind === Assignment.kind) held.push({ kind: blob.kind, bytes: new Uint8Array(blob.bytes) });
        else held.push(blob === undefined ? null : { kind: blob.kind });
      }
      this.#send({ kind: "looked", number, held });
    } catch (error) {
      this.#send({ kind: "looked", number, failure: failureOf(error) });
    }
  }

  /** One rollout begins in each turn: replies and commits have theirs in between. */
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
      const closed = await this.#closer.close(task);
      this.#sealed.push({ number, ...closed });
    } catch (error) {
      if (isRollbookError(error, "write-failed") || isRollbookError(error, "session-failed")) throw error;
      this.#answers.push({ number, failure: failureOf(error) });
    }
    // Those of one commit go together.
    this.#answering ??= setImmediate(() => this.#answer());
  }

  #answer(): void {
    this.#answering = undefined;
    const isNamed = this.#name();
    for (const { number, closed, drifts } of this.#sealed) {
      const { calls: _, grades: _g, ...artifact } = closed;
      this.#answers.push({ number, report: { ...artifact, drifts, isNamed } });
    }
    this.#send({ kind: "sealed", answers: this.#answers });
    this.#answers = [];
    this.#sealed = [];
    // What is answered may go from the disk, which takes that nobody has it open.
    if (!this.#isWorking) this.#journal.close();
  }

  /** False if that did not work: they are sealed all the same, and the serving thread has to see to their names. */
  #name(): boolean {
    try {
      this.#names ??= new ClosedWriter(this.#data.names);
      this.#names.add(this.#sealed.map(({ id, closed }) => [id, closed]));
      return true;
    } catch (error) {
      if (isRollbookError(error, "sqlite")) return false;
      throw error;
    }
  }

  #ask<T>(question: Question): Promise<T> {
    return new Promise((done, failed) => {
      const number = this.#questions++;
      this.#asked.set(number, { done, failed });
      this.#send({ kind: "ask", number, question });
    });
  }

  #hearReply(message: Extract<ToSealing, { kind: "reply" }>): void {
    const { done, failed } = this.#asked.get(message.number)!;
    this.#asked.delete(message.number);
    if ("value" in message) done(message.value as never);
    else failed(errorOf(message.failure));
  }

  /** Comes when everything is answered. */
  async #close(): Promise<void> {
    this.#journal.close();
    this.#names?.close();
    await this.#book.close();
    this.#port.close();
  }

  #send(message: FromSealing): void {
    this.#port.postMessage(message);
  }
}

const data = workerData as SealingData;
void openBook(data.root, { clock: manualClock(data.startedAtMs) }).then((book) => {
  const port = parentPort!;
  const thread = new SealingThread(port, book, data);
  port.on("message", (message: ToSealing) => thread.hear(message));
});
