/** Server-sent events, as they come: bytes in pieces of any size, events out.
 *  In: chunks. Out: one callback per event, with where it began in the chunk that completed it. Tolerant: any line
 *  ending, comments, fields without data. Does not parse the data and does not reconnect. */

export interface SseEvent {
  /** The `event:` field, or "message". */
  readonly type: string;
  readonly data: string;
  /** Offset in the current chunk at which the event began; 0 if it began in an earlier one. */
  readonly start: number;
}

const [LF, CR] = [10, 13];
/** One event larger than this is not an event but a fault. */
const MAX_LINE_BYTES = 64 * 1024 * 1024;

export class SseParser {
  readonly #onEvent: (event: SseEvent) => void;
  readonly #decoder = new TextDecoder();
  /** Pieces of a line whose end has not come yet. */
  #partial: Uint8Array[] = [];
  #partialBytes = 0;
  #data: string[] = [];
  #type = "";
  #start = 0;
  #begun = false;
  #skipLf = false;

  constructor(onEvent: (event: SseEvent) => void) {
    this.#onEvent = onEvent;
  }

  /** False once a line is longer than any event: then nothing more is parsed. */
  push(chunk: Uint8Array): boolean {
    if (this.#partialBytes > MAX_LINE_BYTES) return false;
    let from = 0;
    if (this.#begun || this.#partialBytes > 0) this.#start = 0;
    if (this.#skipLf && chunk.length > 0) {
      if (chunk[0] === LF) from = 1;
      this.#skipLf = false;
    }
    for (let at = nextBreak(chunk, from); at >= 0; at = nextBreak(chunk, from)) {
      this.#line(this.#take(chunk.subarray(from, at)), from);
      from = at + 1;
      if (chunk[at] !== CR) continue;
      if (from === chunk.length) this.#skipLf = true;
      else if (chunk[from] === LF) from++;
    }
    if (from < chunk.length) {
      if (!this.#begun && this.#partialBytes === 0) this.#start = from;
      // A copy: the chunk may be a view into a buffer that is used again.
      const rest = chunk.slice(from);
      this.#partial.push(rest);
      this.#partialBytes += rest.length;
    }
    return true;
  }

  /** The stream has ended: an event without its empty line still counts, because its bytes were delivered. */
  end(): void {
    if (this.#partialBytes > 0) this.#line(this.#take(new Uint8Array(0)), 0);
    this.#line("", 0);
  }

  #take(last: Uint8Array): string {
    if (this.#partialBytes === 0) return this.#decoder.decode(last);
    const whole = Buffer.concat([...this.#partial, last]);
    this.#partial = [];
    this.#partialBytes = 0;
    return this.#decoder.decode(whole);
  }

  #line(line: string, from: number): void {
    if (line === "") {
      this.#dispatch();
      return;
    }
    if (!this.#begun) {
      this.#begun = true;
      this.#start = from;
    }
    if (line.startsWith(":")) return;
    const colon = line.indexOf(":");
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(line[colon + 1] === " " ? colon + 2 : colon + 1);
    if (field === "data") this.#data.push(value);
    else if (field === "event") this.#type = value;
  }

  #dispatch(): void {
    const [data, type] = [this.#data, this.#type];
    this.#begun = false;
    if (data.length === 0 && type === "") return;
    this.#data = [];
    this.#type = "";
    if (data.length > 0)
      this.#onEvent({ type: type || "message", data: data.join("\n"), start: this.#start });
  }
}

function nextBreak(chunk: Uint8Array, from: number): number {
  const lf = chunk.indexOf(LF, from);
  const cr = chunk.indexOf(CR, from);
  if (cr < 0) return lf;
  return lf < 0 ? cr : Math.min(lf, cr);
}
