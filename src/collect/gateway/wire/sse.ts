/** Parses server-sent events from a byte stream. In: chunks of any size. Out: one callback per event, with its
 *  offset in the chunk that completed it. Tolerant: any line ending, comments, fields without data. Does not parse
 *  the data and does not reconnect. */

export interface SseEvent {
  /** The `event:` field, or "message". */
  readonly type: string;
  readonly data: string;
  /** Offset of the event's start in the current chunk; 0 if it began in an earlier chunk. */
  readonly start: number;
}

const [LF, CR] = [10, 13];
/** A larger event, in bytes or in lines, is a fault. */
const MAX_EVENT_BYTES = 64 * 1024 * 1024;
const MAX_EVENT_LINES = 100_000;

export class SseParser {
  readonly #onEvent: (event: SseEvent) => void;
  readonly #decoder = new TextDecoder();
  /** Pieces of a line whose end has not arrived yet. */
  #partial: Uint8Array[] = [];
  #partialBytes = 0;
  #data: string[] = [];
  #dataChars = 0;
  #type = "";
  #start = 0;
  #begun = false;
  #skipLf = false;
  #isBroken = false;

  constructor(onEvent: (event: SseEvent) => void) {
    this.#onEvent = onEvent;
  }

  /** False once the input exceeds the size of any event. The parser then stops. */
  push(chunk: Uint8Array): boolean {
    if (this.#isBroken) return false;
    let from = 0;
    if (this.#begun || this.#partialBytes > 0) this.#start = 0;
    if (this.#skipLf && chunk.length > 0) {
      if (chunk[0] === LF) from = 1;
      this.#skipLf = false;
    }
    // Each kind of line break is searched from its last position: a search for both at every line would be quadratic.
    let lf = next(chunk, LF, from);
    let cr = next(chunk, CR, from);
    while ((lf >= 0 || cr >= 0) && !this.#isBroken) {
      const isCr = lf < 0 || (cr >= 0 && cr < lf);
      const at = isCr ? cr : lf;
      this.#line(this.#take(chunk.subarray(from, at)), from);
      from = at + 1;
      if (isCr) {
        if (from === chunk.length) this.#skipLf = true;
        else if (chunk[from] === LF) from++;
        cr = next(chunk, CR, from);
      }
      if (lf >= 0 && lf < from) lf = next(chunk, LF, from);
    }
    if (from < chunk.length && !this.#isBroken) {
      if (!this.#begun && this.#partialBytes === 0) this.#start = from;
      // A copy: the chunk may be a view into a buffer that is reused.
      const rest = chunk.slice(from);
      this.#partial.push(rest);
      this.#partialBytes += rest.length;
      if (this.#partialBytes > MAX_EVENT_BYTES) this.#break();
    }
    return !this.#isBroken;
  }

  /** Ends the stream. An event without its empty line still counts, because its bytes were delivered. */
  end(): void {
    if (this.#isBroken) return;
    if (this.#partialBytes > 0) this.#line(this.#take(new Uint8Array(0)), 0);
    this.#line("", 0);
  }

  #take(last: Uint8Array): string {
    if (this.#partialBytes === 0) return last.length === 0 ? "" : this.#decoder.decode(last);
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
    if (field === "data") {
      this.#dataChars += value.length;
      if (this.#data.push(value) > MAX_EVENT_LINES || this.#dataChars > MAX_EVENT_BYTES) this.#break();
    } else if (field === "event") this.#type = value;
  }

  #break(): void {
    this.#isBroken = true;
    this.#partial = [];
    this.#partialBytes = 0;
    this.#data = [];
  }

  #dispatch(): void {
    const [data, type] = [this.#data, this.#type];
    this.#begun = false;
    if (data.length === 0 && type === "") return;
    this.#data = [];
    this.#dataChars = 0;
    this.#type = "";
    if (data.length > 0)
      this.#onEvent({ type: type || "message", data: data.join("\n"), start: this.#start });
  }
}

/** Index of the next such byte. The check of the first byte is faster for a flood of empty lines. */
function next(chunk: Uint8Array, byte: number, from: number): number {
  return chunk[from] === byte ? from : chunk.indexOf(byte, from);
}
