/** Reads canonical JSON (RFC 8785) from bytes, value by value.
 *  In: bytes and an offset. Out: values, or INVALID if the bytes are not canonical. After INVALID the source must not
 *  be used. Knows no schemas. */
import { canonicalize, MAX_DEPTH } from "../../base/index.ts";

export const INVALID = Symbol("invalid");

/** Reads one value and moves the offset behind it. */
export type Read = (source: ByteSource) => unknown;

const [QUOTE, COMMA, COLON, BACKSLASH, ZERO, NINE] = [34, 44, 58, 92, 48, 57] as const;
const BRACKETS = { "{": 123, "}": 125, "[": 91, "]": 93 } as const;

/** Bytes and the current offset. */
export class ByteSource {
  readonly bytes: Buffer;
  at = 0;
  depth = 0;

  constructor(bytes: Uint8Array) {
    this.bytes = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  /** Returns a new string: a slice of one long text would keep all of that text in memory. */
  text(from: number, to: number): string {
    return this.bytes.toString("latin1", from, to);
  }

  open(bracket: "{" | "["): boolean {
    return this.bytes[this.at++] === BRACKETS[bracket] && ++this.depth <= MAX_DEPTH;
  }

  close(bracket: "}" | "]"): boolean {
    if (this.bytes[this.at] !== BRACKETS[bracket]) return false;
    this.at++;
    this.depth--;
    return true;
  }

  comma(): boolean {
    if (this.bytes[this.at] !== COMMA) return false;
    this.at++;
    return true;
  }
}

export function take(source: ByteSource, word: Uint8Array): boolean {
  const { bytes, at } = source;
  for (let i = 0; i < word.length; i++) if (bytes[at + i] !== word[i]) return false;
  source.at = at + word.length;
  return true;
}

/** Consumes `text` in quotes if it comes next. Never matches text with escapes or non-ASCII letters, whose bytes
 *  differ. */
export function takeString(source: ByteSource, text: string): boolean {
  const { bytes, at } = source;
  const end = at + text.length + 1;
  if (bytes[at] !== QUOTE || bytes[end] !== QUOTE) return false;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (bytes[at + 1 + i] !== code || PLAIN[code] === 0) return false;
  }
  source.at = end + 1;
  return true;
}

/** 0: needs an escape or is not ASCII. 1: stands in a string unescaped. 2: the same, and a lower-case hexadecimal
 *  digit. */
const PLAIN = Uint8Array.from({ length: 256 }, (_, code) => {
  if (code < 0x20 || code > 0x7f || code === QUOTE || code === BACKSLASH) return 0;
  return /[0-9a-f]/.test(String.fromCharCode(code)) ? 2 : 1;
});

export function readString(source: ByteSource): string | typeof INVALID {
  const { bytes } = source;
  const start = source.at + 1;
  if (bytes[start - 1] !== QUOTE) return INVALID;
  let end = start;
  while (PLAIN[bytes[end]!]! > 0) end++;
  if (bytes[end] !== QUOTE) return readEscaped(source, start - 1, end);
  source.at = end + 1;
  return source.text(start, end);
}

/** Reads a string with escapes or non-ASCII letters. Its canonical form must equal these bytes. */
function readEscaped(source: ByteSource, start: number, from: number): string | typeof INVALID {
  const { bytes } = source;
  let end = from;
  while (end < bytes.length && bytes[end] !== QUOTE) end += bytes[end] === BACKSLASH ? 2 : 1;
  const piece = bytes.subarray(start, end + 1);
  let value: unknown;
  try {
    value = JSON.parse(piece.toString());
  } catch {
    return INVALID;
  }
  if (typeof value !== "string" || !value.isWellFormed()) return INVALID;
  if (!Buffer.from(JSON.stringify(value)).equals(piece)) return INVALID;
  source.at = end + 1;
  return value;
}

const DIGEST_START = Buffer.from('"sha256:');
const DIGEST_DIGITS = 64;

export function readDigest(source: ByteSource): string | typeof INVALID {
  const { bytes, at } = source;
  if (!take(source, DIGEST_START)) return INVALID;
  const end = source.at + DIGEST_DIGITS;
  for (let i = source.at; i < end; i++) if (PLAIN[bytes[i]!] !== 2) return INVALID;
  source.at = end + 1;
  return bytes[end] === QUOTE ? source.text(at + 1, end) : INVALID;
}

export function readNumber(source: ByteSource): number | typeof INVALID {
  const { bytes, at: start } = source;
  let at = start;
  let value = 0;
  for (; bytes[at]! >= ZERO && bytes[at]! <= NINE; at++) value = value * 10 + bytes[at]! - ZERO;
  const digits = at - start;
  source.at = at;
  // Almost every number is a short integer.
  if (digits > 0 && digits <= 15 && !isNumeric(bytes[at]!) && (digits === 1 || bytes[start] !== ZERO))
    return value;
  while (isNumeric(bytes[source.at]!)) source.at++;
  const text = source.text(start, source.at);
  return text !== "" && String(Number(text)) === text ? Number(text) : INVALID;
}

/** True for a character of a JSON number: a digit, or one of `. e E + -`. */
function isNumeric(code: number): boolean {
  return (
    (code >= ZERO && code <= NINE) || code === 46 || code === 101 || code === 69 || code === 43 || code === 45
  );
}

export function readList(source: ByteSource, read: Read): unknown[] | typeof INVALID {
  if (!source.open("[")) return INVALID;
  const out: unknown[] = [];
  if (source.close("]")) return out;
  do {
    const value = read(source);
    if (value === INVALID) return INVALID;
    out.push(value);
  } while (source.comma());
  return source.close("]") ? out : INVALID;
}

/** Reads an object with arbitrary keys in canonical order. */
export function readMap(
  source: ByteSource,
  readKey: Read,
  read: Read,
): Record<string, unknown> | typeof INVALID {
  if (!source.open("{")) return INVALID;
  const out: Record<string, unknown> = {};
  if (source.close("}")) return out;
  let previous: string | undefined;
  do {
    const key = readKey(source) as string | typeof INVALID;
    if (key === INVALID || source.bytes[source.at++] !== COLON) return INVALID;
    if (previous !== undefined && key <= previous) return INVALID;
    previous = key;
    const value = read(source);
    if (value === INVALID) return INVALID;
    // A plain assignment to __proto__ would change the prototype instead of adding a key.
    if (key === "__proto__")
      Object.defineProperty(out, key, { value, enumerable: true, configurable: true, writable: true });
    else out[key] = value;
  } while (source.comma());
  return source.close("}") ? out : INVALID;
}

const WORDS = [true, false, null].map((value) => ({ value, word: Buffer.from(canonicalize(value)) }));

export function readAny(source: ByteSource): unknown {
  switch (source.bytes[source.at]) {
    case QUOTE:
      return readString(source);
    case BRACKETS["{"]:
      return readMap(source, readString, readAny);
    case BRACKETS["["]:
      return readList(source, readAny);
    case 102:
    case 110:
    case 116: {
      const found = WORDS.find(({ word }) => take(source, word));
      return found === undefined ? INVALID : found.value;
    }
    default:
      return readNumber(source);
  }
}
