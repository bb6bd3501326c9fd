/** Where the reply to a call goes: to a connection, or to a program that holds the gateway. In: status and chunks. Out: for
 *  such a program, the whole reply once its last byte is released. */

/** What a call needs of a response of node:http. */
export interface ReplySink {
  readonly headersSent: boolean;
  readonly destroyed: boolean;
  /** Everything has been taken. */
  readonly writableFinished: boolean;
  writeHead(status: number, headers: string[] | Record<string, string | number>): unknown;
  flushHeaders(): void;
  /** False if it is full; it then tells "drain". */
  write(chunk: Buffer): boolean;
  end(chunk?: Buffer): unknown;
  destroy(): unknown;
  on(event: "close", listener: () => void): unknown;
  once(event: "drain", listener: () => void): unknown;
}

/** `settle` gets the reply; undefined if it was broken off. */
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

  /** It is never full. */
  once(): void {}
}
