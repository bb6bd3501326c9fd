/** One JetStream stream as a table: the newest message of a subject is its value, replaced by compare-and-set. In: a
 *  place and its credentials. Out: read, write if unchanged, follow. Every call is retried while the server is away,
 *  up to `patienceMs`. After a lost answer, a write is looked up before it counts as a conflict. Does not know the
 *  content of messages. */
import { setTimeout as sleep } from "node:timers/promises";
import type { JetStreamClient, JetStreamManager, StreamConfig } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import { isRollbookError, RollbookError } from "../../../base/index.ts";
import { connectTo } from "./nats-connect.ts";
import { faultOf } from "./nats-faults.ts";
import type { NatsAccess, NatsPlace } from "./nats-place.ts";
import { checkConfig, configOf } from "./stream-config.ts";

export interface StreamOptions {
  readonly place: NatsPlace;
  readonly access: NatsAccess;
  /** True creates a missing stream. */
  readonly create: boolean;
  /** Milliseconds that a server may be away before a call fails. */
  readonly patienceMs: number;
  readonly log: (line: string) => void;
}

export interface StreamMessage {
  readonly subject: string;
  readonly seq: number;
  readonly text: string;
}

interface WriteRequest {
  readonly subject: string;
  readonly text: string;
  /** Sequence of the message that this write replaces; 0 if there is none. */
  readonly after: number;
  /** True if the stored message is the one of this write. Called after a lost answer. */
  readonly isOwn: (there: StreamMessage) => boolean;
}

/** Milliseconds to wait for one answer of the server. Then the request is sent again. */
const ANSWER_MS = 2_000;
/** Two missed heartbeats reveal a consumer on a dead node. */
const FOLLOW_HEARTBEAT_MS = 1_000;

export class NatsStream {
  readonly #connection: NatsConnection;
  readonly #js: JetStreamClient;
  readonly #manager: JetStreamManager;
  readonly #options: StreamOptions;
  readonly #name: string;
  #closed = false;
  #stopFollowing: () => void = () => {};
  /** Requests whose answers are lost with the connection. */
  readonly #unanswered = new Set<(error: Error) => void>();
  /** A request sent without a connection may never leave, so retries wait for the reconnection. */
  #isConnected = true;
  readonly #reconnected = new Set<() => void>();

  /** Start of every subject. */
  readonly prefix: string;

  static async open(options: StreamOptions): Promise<NatsStream> {
    const { jetstream, jetstreamManager } = await import("@nats-io/jetstream");
    const connection = await connectTo(options.place, options.access);
    try {
      const manager = await jetstreamManager(connection, { checkAPI: false, timeout: ANSWER_MS });
      const stream = new NatsStream({
        connection,
        js: jetstream(connection, { timeout: ANSWER_MS }),
        manager,
        options,
      });
      await stream.#ensure();
      return stream;
    } catch (error) {
      await connection.close();
      throw error;
    }
  }

  private constructor(at: {
    connection: NatsConnection;
    js: JetStreamClient;
    manager: JetStreamManager;
    options: StreamOptions;
  }) {
    this.#connection = at.connection;
    this.#js = at.js;
    this.#manager = at.manager;
    this.#options = at.options;
    this.#name = `rollbook-${at.options.place.name}`;
    this.prefix = `rollbook.${at.options.place.name}.`;
    void this.#report();
  }

  /** The newest message of a subject, from the leader of the stream. Wildcards are allowed. */
  async read(subject: string): Promise<StreamMessage | undefined> {
    return this.#patiently(async () => {
      const found = await this.#manager.streams.getMessage(this.#name, { last_by_subj: subject });
      return found === null ? undefined : { subject: found.subject, seq: found.seq, text: found.string() };
    });
  }

  /** A message that never changes, from any node that has it; otherwise from the leader. */
  async readFixed(subject: string): Promise<StreamMessage | undefined> {
    const found = await this.#patiently(() =>
      this.#manager.direct.getMessage(this.#name, { last_by_subj: subject }),
    );
    if (found !== null) return { subject: found.subject, seq: found.seq, text: found.string() };
    return this.read(subject);
  }

  /** The sequence of the new message. Undefined if another message was there. The message is stored when this
   *  resolves. */
  async write({ subject, text, after, isOwn }: WriteRequest): Promise<number | undefined> {
    let tries = 0;
    return this.#patiently(async () => {
      const isFirst = tries++ === 0;
      try {
        const options = { expect: { lastSubjectSequence: after }, timeout: ANSWER_MS, retries: 0 };
        return (await this.#js.publish(subject, text, options)).seq;
      } catch (error) {
        if (faultOf(error).kind !== "conflict") throw error;
        if (isFirst) return undefined;
        // The answer to an earlier try may have been lost.
        const there = await this.read(subject);
        return there !== undefined && isOwn(there) ? there.seq : undefined;
      }
    });
  }

  /** Delivers every message of the subjects in stream order until closed, only the newest of each subject. A message
   *  that is replaced before its delivery is skipped. */
  follow(subjects: string, told: (message: StreamMessage) => void, failed: (error: unknown) => void): void {
    void this.#follow(subjects, told).catch(failed);
  }

  /** Follows again from the last delivered message. Called when expected messages do not arrive. */
  followAgain(): void {
    this.#stopFollowing();
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#stopFollowing();
    for (const wake of this.#reconnected) wake();
    await this.#connection.close();
  }

  async #follow(subjects: string, told: (message: StreamMessage) => void): Promise<void> {
    let seq = 0;
    for (let failures = 0; !this.#closed; failures++) {
      try {
        const messages = await this.#whileConnected(async () => {
          const consumer = await this.#js.consumers.get(this.#name, {
            filter_subjects: subjects,
            deliver_policy: "by_start_sequence",
            opt_start_seq: seq + 1,
          });
          return consumer.consume({
            max_messages: 1_000,
            expires: 10 * FOLLOW_HEARTBEAT_MS,
            idle_heartbeat: FOLLOW_HEARTBEAT_MS,
          });
        });
        this.#stopFollowing = () => messages.stop();
        if (this.#closed) messages.stop();
        for await (const message of messages) {
          seq = message.seq;
          failures = 0;
          told({ subject: message.subject, seq, text: message.string() });
        }
        continue;
      } catch (error) {
        if (isRollbookError(error)) throw error;
        if (this.#closed) return;
        // The client stopped reconnecting: the server now refuses the credentials.
        if (this.#connection.isClosed()) throw this.#away((await this.#connection.closed()) ?? error);
        const { kind } = faultOf(error);
        if ((kind === "refused" || kind === "missing") && failures > 100) throw this.#refused(error);
      }
      if (!this.#closed) await (this.#isConnected ? sleep(pauseMs(failures)) : this.#connectedWithin(1_000));
    }
  }

  async #ensure(): Promise<void> {
    const { place, create } = this.#options;
    let there = await this.#patiently(() => this.#find());
    if (there === undefined && !create)
      throw new RollbookError(
        "no-queue",
        { queue: place.name },
        `there is no queue ${place.name} at ${place.servers.join(", ")}. \`rollbook launch\` makes one; check the name at the end of --queue.`,
      );
    if (there === undefined)
      there = await this.#patiently(async () => {
        try {
          return (await this.#manager.streams.add(configOf(this.#name, this.prefix, place))).config;
        } catch (error) {
          // Another process created the stream, or this process did and lost the answer.
          const found = await this.#find();
          if (found === undefined) throw error;
          return found;
        }
      });
    checkConfig(there, configOf(this.#name, this.prefix, place), place);
  }

  async #find(): Promise<StreamConfig | undefined> {
    try {
      return (await this.#manager.streams.info(this.#name)).config;
    } catch (error) {
      if (faultOf(error).kind === "missing") return undefined;
      throw error;
    }
  }

  /** Retries while the server is away. `ask` must be idempotent. */
  async #patiently<T>(ask: () => Promise<T>): Promise<T> {
    const { patienceMs } = this.#options;
    const startMs = performance.now();
    for (let failures = 0; ; failures++) {
      if (!this.#isConnected) await this.#connectedWithin(patienceMs - (performance.now() - startMs));
      try {
        return await this.#whileConnected(ask);
      } catch (error) {
        if (isRollbookError(error)) throw error;
        const { kind } = faultOf(error);
        if (kind !== "away" && kind !== "busy") throw this.#refused(error);
        if (this.#closed || performance.now() - startMs > patienceMs) throw this.#away(error);
      }
      if (this.#isConnected) await sleep(pauseMs(failures));
    }
  }

  /** The client keeps waiting for answers that a lost connection cannot bring. This call fails at once, so that it
   *  can be retried. */
  #whileConnected<T>(ask: () => Promise<T>): Promise<T> {
    if (!this.#isConnected) return Promise.reject(new LostConnection());
    return new Promise((done, failed) => {
      this.#unanswered.add(failed);
      ask()
        .then(done, failed)
        .finally(() => this.#unanswered.delete(failed));
    });
  }

  #connectedWithin(ms: number): Promise<void> {
    return new Promise((done) => {
      const wake = () => {
        clearTimeout(timer);
        this.#reconnected.delete(wake);
        done();
      };
      const timer = setTimeout(wake, ms);
      this.#reconnected.add(wake);
    });
  }

  async #report(): Promise<void> {
    const { log } = this.#options;
    for await (const event of this.#connection.status()) {
      if (event.type === "disconnect") {
        log(`queue: lost the connection to ${event.server}; connecting again`);
        this.#isConnected = false;
        const unanswered = [...this.#unanswered];
        this.#unanswered.clear();
        for (const fail of unanswered) fail(new LostConnection());
      }
      if (event.type === "reconnect") {
        log(`queue: connected to ${event.server}`);
        this.#isConnected = true;
        for (const wake of this.#reconnected) wake();
        this.followAgain();
      }
    }
  }

  #away(cause: unknown): RollbookError {
    const { servers } = this.#options.place;
    const seconds = Math.round(this.#options.patienceMs / 1000);
    return new RollbookError(
      "queue-away",
      { servers },
      `no answer from the queue at ${servers.join(", ")} for ${seconds} s: ${faultOf(cause).message}. Start nats-server, or correct --queue; then give the same command again.`,
      { cause },
    );
  }

  #refused(cause: unknown): RollbookError {
    return new RollbookError(
      "queue-refused",
      { stream: this.#name },
      `the server refuses the queue ${this.#name}: ${faultOf(cause).message}. Check the limits of the stream and the permissions of the user.`,
      { cause },
    );
  }
}

class LostConnection extends Error {
  override readonly name = "ConnectionError";
  constructor() {
    super("the connection was lost");
  }
}

function pauseMs(failures: number): number {
  return Math.min(1_000, 20 * 2 ** Math.min(failures, 6));
}
