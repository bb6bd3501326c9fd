/** Checks the footer of a Parquet file before it is parsed. A list in the footer may claim billions of entries, and the
 *  parser would allocate each of them. In: bytes in Thrift's compact protocol. Out: nothing, or an error. Does not
 *  interpret the values. */

const [STOP, TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, STRUCT] = [
  ...[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 12],
] as const;
/** Footers have only a few levels of nesting. */
const MOST_LEVELS = 64;

export function checkFooter(bytes: Uint8Array): void {
  new FooterWalk(bytes).struct(0);
}

class FooterWalk {
  readonly #bytes: Uint8Array;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  struct(level: number): void {
    if (level > MOST_LEVELS) throw new Error(`its footer is nested more than ${MOST_LEVELS} levels deep`);
    for (let field = this.#byte(); (field & 0x0f) !== STOP; field = this.#byte()) {
      if (field >> 4 === 0) this.#number();
      this.#value(field & 0x0f, level);
    }
  }

  #value(type: number, level: number): void {
    if (type === TRUE || type === FALSE) return;
    if (type === BYTE) this.#skip(1);
    else if (type === I16 || type === I32 || type === I64) this.#number();
    else if (type === DOUBLE) this.#skip(8);
    else if (type === BINARY) this.#skip(this.#number());
    else if (type === LIST) this.#list(level);
    else if (type === STRUCT) this.struct(level + 1);
    else throw new Error(`its footer has a value of the unknown type ${type}`);
  }

  /** Every entry takes at least one byte, so a list that fits into the remaining bytes is finite. */
  #list(level: number): void {
    const head = this.#byte();
    const size = head >> 4 === 15 ? this.#number() : head >> 4;
    if (size > this.#bytes.length - this.#at)
      throw new Error(`a list in its footer has ${size} entries and ${this.#bytes.length - this.#at} bytes`);
    const type = head & 0x0f;
    const isFlag = type === TRUE || type === FALSE;
    if (isFlag) this.#skip(size);
    else for (let i = 0; i < size; i++) this.#value(type, level + 1);
  }

  /** Reads seven bits per byte. */
  #number(): number {
    let [value, scale] = [0, 1];
    for (let byte = this.#byte(); ; byte = this.#byte()) {
      value += (byte & 0x7f) * scale;
      if (byte < 0x80) return value;
      scale *= 128;
    }
  }

  #byte(): number {
    this.#skip(1);
    return this.#bytes[this.#at - 1]!;
  }

  #skip(count: number): void {
    if (count > this.#bytes.length - this.#at) throw new Error("its footer is cut short");
    this.#at += count;
  }
}
