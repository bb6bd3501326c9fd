/** Destination of a call's reply: a connection, or a program that holds the gateway. In: status and chunks. Out: for
 *  such a program, the whole reply once its last byte is released. */

/** The part of a node:http response that a call uses. */
export interface ReplySink {
  readonly headersSent: boolean;
  readonly destroyed: boolean;
  /** True once all bytes have been taken. */
  readonly writableFinished: boolean;
  writeHead(status: number, headers: string[] | Record<string, string | number>): unknown;
  flushHeaders(): void;
  /** False if the buffer is full; "drain" follows later. */
  write(chunk: Buffer): boolean;
  end(chunk?: Buffer): unknown;
  destroy(): unknown;
  on(event: "close", listener: () => void): unknown;
  once(event: "drain", listener: () => void): unknown;
}

/** `settle` receives the reply, or undefined if the reply was cut. */
export class DirectReply implements ReplySink {
  headersSent = false;
  destroyed = false;
  writableFinished = false;
  #status = 0;
  readonly #chunks: Buffer[] = [];
  readonly #listeners: (() => void)[] = [];
  readonly #settle: (reply: { readonly status: number; readonly body: Buffer } | undefined) => void;

  constructor(settle: (reply: { readonly status: number; readonly body: Buffer } | undefined) => void) {
    this.#settle = settle;
  }

  writeHead(status: number): void {
    this.headersSent = true;
    this.#status = status;
  }

  flushHeaders(): void {}

  write(chunk: Buffer): boolean {
    this.#chunks.push(chunk);
    return true;
  }

  end(chunk?: Buffer): void {
    if (this.destroyed) return;
    if (chunk !== undefined) this.#chunks.push(chunk);
    this.writableFinished = true;
    this.destroy();
  }

  destroy(): void {
    if (this.destroyed) return;
    this.destroyed = true;
    for (const tell of this.#listeners) tell();
    const [first, second] = this.#chunks;
    const body = first !== undefined && second === undefined ? first : Buffer.concat(this.#chunks);
    this.#settle(this.writableFinished ? { status: this.#status, body } : undefined);
  }

  on(_event: "close", listener: () => void): void {
    this.#listeners.push(listener);
  }

  /** A direct reply is never full, so "drain" never occurs. */
  once(): void {}
}
