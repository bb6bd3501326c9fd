/** A load generator over bare sockets, so that its own cost is small.
 *  In: a port and requests. Out: replies per second (closed loop), or the latency of each reply (open loop). */
import { connect, type Socket } from "node:net";

export interface Reply {
  readonly status: number;
  /** From sending to the first byte of the body, and to the last byte. */
  readonly firstMs: number;
  readonly totalMs: number;
}

/** One connection, one request at a time. */
class Connection {
  readonly #socket: Socket;
  #pending: Buffer = Buffer.alloc(0);
  #sentMs = 0;
  #firstMs = 0;
  #done: ((reply: Reply) => void) | undefined;
  #failed: ((error: Error) => void) | undefined;

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.on("data", (data) => this.#onData(data));
    const fail = (error?: Error) => this.#failed?.(error ?? new Error("the connection was closed"));
    socket.on("error", fail);
    socket.on("close", () => fail());
  }

  static open(port: number): Promise<Connection> {
    return new Promise((done, failed) => {
      const socket = connect({ port, host: "127.0.0.1", noDelay: true });
      socket.once("connect", () => done(new Connection(socket)));
      socket.once("error", failed);
    });
  }

  send(request: Buffer, sentMs = performance.now()): Promise<Reply> {
    return new Promise((done, failed) => {
      this.#done = done;
      this.#failed = failed;
      this.#sentMs = sentMs;
      this.#firstMs = 0;
      this.#socket.write(request);
    });
  }

  close(): void {
    this.#failed = undefined;
    this.#socket.destroy();
  }

  #onData(data: Buffer): void {
    this.#pending = this.#pending.length === 0 ? data : Buffer.concat([this.#pending, data]);
    const end = this.#pending.indexOf("\r\n\r\n");
    if (end < 0) return;
    if (this.#firstMs === 0 && this.#pending.length > end + 4) this.#firstMs = performance.now();
    const head = this.#pending.subarray(0, end).toString("latin1");
    const length = /content-length: *(\d+)/i.exec(head)?.[1];
    const isWhole =
      length === undefined
        ? this.#pending.subarray(-5).toString("latin1") === "0\r\n\r\n"
        : this.#pending.length >= end + 4 + Number(length);
    if (!isWhole) return;
    this.#pending = Buffer.alloc(0);
    const now = performance.now();
    this.#done!({
      status: Number(head.slice(9, 12)),
      firstMs: this.#firstMs - this.#sentMs,
      totalMs: now - this.#sentMs,
    });
  }
}

export class Load {
  readonly #port: number;
  readonly #requests: () => Buffer;
  #connections: Connection[] = [];

  constructor(port: number, requests: () => Buffer) {
    this.#port = port;
    this.#requests = requests;
  }

  async open(connections: number): Promise<void> {
    this.#connections = await Promise.all(
      Array.from({ length: connections }, () => Connection.open(this.#port)),
    );
  }

  close(): void {
    for (const connection of this.#connections) connection.close();
  }

  /** Sends each request once. Every free connection takes the next request. */
  async sendAll(requests: readonly Buffer[]): Promise<void> {
    let next = 0;
    await Promise.all(
      this.#connections.map(async (connection) => {
        while (next < requests.length) check(await connection.send(requests[next++]!));
      }),
    );
  }

  /** Every connection sends one list of requests after another until the time is up. Returns requests per second.
   *  `seen` gets every reply; with one connection, in the order of the requests. */
  async lists(
    ms: number,
    list: () => readonly Buffer[],
    seen: (reply: Reply) => void = () => {},
  ): Promise<number> {
    const startMs = performance.now();
    let sent = 0;
    await Promise.all(
      this.#connections.map(async (connection) => {
        while (performance.now() - startMs < ms)
          for (const request of list()) {
            const reply = await connection.send(request);
            check(reply);
            seen(reply);
            sent++;
          }
      }),
    );
    return (sent / (performance.now() - startMs)) * 1000;
  }

  /** Every connection sends its next request after each reply. Returns replies per second. */
  async closedLoop(ms: number, request: () => Buffer = this.#requests): Promise<number> {
    const startMs = performance.now();
    let replies = 0;
    await Promise.all(
      this.#connections.map(async (connection) => {
        while (performance.now() - startMs < ms) {
          check(await connection.send(request()));
          replies++;
        }
      }),
    );
    return (replies / (performance.now() - startMs)) * 1000;
  }

  /** Requests are sent at their scheduled times, even if earlier ones are unanswered; a late start counts as latency.
   *  Replies are in the order of their requests. */
  async openLoop(perSecond: number, ms: number): Promise<Reply[]> {
    const replies: Reply[] = [];
    let asked = 0;
    const free = [...this.#connections];
    const waiting: number[] = [];
    const startMs = performance.now();
    const count = Math.floor((perSecond * ms) / 1000);
    let finished = 0;
    await new Promise<void>((done, failed) => {
      const dispatch = (dueMs: number): void => {
        const connection = free.pop();
        if (connection === undefined) {
          waiting.push(dueMs);
          return;
        }
        const order = asked++;
        connection.send(this.#requests(), dueMs).then((reply) => {
          check(reply);
          replies[order] = reply;
          free.push(connection);
          if (++finished === count) done();
          const next = waiting.shift();
          if (next !== undefined) dispatch(next);
        }, failed);
      };
      let sent = 0;
      // Timers have a resolution of a millisecond: all due requests are sent, and each is timed from its due time or
      // later.
      const tick = (): void => {
        const now = performance.now();
        while (sent < count && startMs + (sent * 1000) / perSecond <= now) {
          dispatch(now);
          sent++;
        }
        // A spinning generator would take the processor from the measured program.
        if (sent < count) setTimeout(tick, 1);
      };
      tick();
    });
    return replies;
  }
}

function check({ status }: Reply): void {
  if (status !== 200 && status !== 201) throw new Error(`the answer was ${status}`);
}

export function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))]!;
}
