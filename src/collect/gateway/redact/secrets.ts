/** Finds secrets in many spellings. In: the secrets, and text or bytes. Out: true if a secret is present, and the
 *  text without it. Finds a secret
 *  - as it is;
 *  - in base64 and base64url, at any of three alignments;
 *  - with any of its characters percent-encoded or as JSON escapes, also in JSON inside of JSON;
 *  - with zero bytes between its characters, as in UTF-16.
 *  Pure. Does not find a secret that is compressed, encrypted or spelled backwards. */

export const REDACTED = "[redacted]";
/** A shorter secret would match ordinary words. */
export const MIN_SECRET = 8;

/** One spelling of a secret in text. */
interface Needle {
  readonly text: string;
  /** True for part of a longer run of base64 characters. The whole run is redacted. */
  readonly isBase64: boolean;
}

const [ZERO, BACKSLASH, PERCENT] = [0, 0x5c, 0x25];
const ESCAPED_SLASH = Buffer.from("\\/");
const UNICODE_ESCAPE = Buffer.from("\\u00");
const PERCENT_SIGN = Buffer.from("%");
const BASE64 = Buffer.from("base64");
const PRINTABLE = /^[\x20-\x7e]+$/;
const BASE64_RUN = /[A-Za-z0-9+/_=-]/;
/** A wrapped line of base64 has at least this many characters before the break. */
const WRAPPED = 12;

export class SecretFinder {
  readonly #needles: readonly Needle[];
  readonly #bytes: readonly Buffer[];
  readonly #pattern: RegExp;
  /** Undefined if a secret has characters that JSON or percent-encoding changes. */
  readonly #codes: SpelledCodes | undefined;
  readonly #hasSlash: boolean;
  readonly #leastBytes: number;

  /** `secrets` has at least one element. */
  constructor(secrets: readonly string[]) {
    this.#needles = [...new Set(secrets)].flatMap(needlesOf);
    this.#bytes = this.#needles.map(({ text }) => Buffer.from(text));
    this.#leastBytes = Math.min(...this.#bytes.map(({ length }) => length));
    const spelled = (isBase64: boolean) =>
      this.#needles.filter((each) => each.isBase64 === isBase64).map(spellingsOf);
    this.#pattern = new RegExp(`(${spelled(true).join("|")})|${spelled(false).join("|")}`, "g");
    const isPlain = secrets.every((secret) => PRINTABLE.test(secret) && !/["\\%]/.test(secret));
    this.#codes = isPlain ? codesOf(this.#needles) : undefined;
    this.#hasSlash = this.#needles.some(({ text }) => text.includes("/"));
  }

  /** True if the bytes certainly hold no secret, found without decoding. False means that only a closer search can
   *  tell. */
  isPlainlyClear(bytes: Buffer): boolean {
    const codes = this.#codes;
    if (codes === undefined) return false;
    if (this.#hasNeedle(bytes, codes.run) || bytes.includes(ZERO)) return false;
    const slash = bytes.indexOf(BACKSLASH);
    if (slash >= 0) {
      if (this.#hasSlash && bytes.includes(ESCAPED_SLASH, slash)) return false;
      if (hasCode(bytes, { from: slash, mark: UNICODE_ESCAPE, codes: codes.escaped })) return false;
    }
    const percent = bytes.indexOf(PERCENT);
    if (percent >= 0 && hasCode(bytes, { from: percent, mark: PERCENT_SIGN, codes: codes.encoded }))
      return false;
    return !bytes.includes(BASE64) || !isWrapped(bytes);
  }

  /** A needle can only be in a run of characters that occur in needles. Every run that is long enough contains a
   *  byte at the sampled positions, `#leastBytes` apart. Most runs are words and shorter than any needle. */
  #hasNeedle(bytes: Buffer, isInRun: Uint8Array): boolean {
    const least = this.#leastBytes;
    for (let at = least - 1; at < bytes.length; at += least) {
      if (isInRun[bytes[at]!] === 0) continue;
      let start = at;
      while (start > 0 && isInRun[bytes[start - 1]!] === 1) start--;
      let end = at + 1;
      while (end < bytes.length && isInRun[bytes[end]!] === 1) end++;
      if (end - start >= least) {
        const run = bytes.subarray(start, end);
        for (const needle of this.#bytes) if (run.includes(needle)) return true;
      }
      // The byte at `end` is in no run, so the next sample counts from there.
      at = end;
    }
    return false;
  }

  isClear(bytes: Buffer): boolean {
    return this.isPlainlyClear(bytes) || !this.finds(bytes.toString("latin1"), bytes);
  }

  /** True if the text holds a secret. `bytes` serve to find a secret that is not ASCII. Decodes the text repeatedly
   *  until it no longer changes: one pattern of all spellings takes many times as long. */
  finds(text: string, bytes?: Buffer): boolean {
    if (text.length < MIN_SECRET) return false;
    let decoded = text;
    for (let round = 0; round < MOST_ROUNDS; round++) {
      if (this.#hasNeedleIn(decoded)) return true;
      const next = decodeOnce(decoded);
      if (next === decoded) break;
      decoded = next;
    }
    if (this.#codes !== undefined) return false;
    this.#pattern.lastIndex = 0;
    return this.#pattern.test(text) || (bytes !== undefined && this.finds(bytes.toString()));
  }

  /** The redacted text. The same text if it holds no secret. */
  redact(text: string): string {
    if (!this.finds(text)) return text;
    let out = "";
    let copied = 0;
    this.#pattern.lastIndex = 0;
    for (let found = this.#pattern.exec(text); found !== null; found = this.#pattern.exec(text)) {
      let start = found.index;
      let end = start + found[0].length;
      if (found[1] !== undefined) {
        while (start > copied && BASE64_RUN.test(text[start - 1]!)) start--;
        while (end < text.length && BASE64_RUN.test(text[end]!)) end++;
      }
      out += text.slice(copied, start) + REDACTED;
      copied = end;
      this.#pattern.lastIndex = end;
    }
    out += text.slice(copied);
    // The pattern lacks this spelling, so the whole text is replaced.
    return this.finds(out) ? REDACTED : out;
  }

  #hasNeedleIn(text: string): boolean {
    if (this.#needles.some((needle) => text.includes(needle.text))) return true;
    if (!/[\s\\]/.test(text)) return false;
    const unbroken = text.replaceAll(/\\{1,16}[nrt]|\s/g, "");
    return this.#needles.some((needle) => needle.isBase64 && unbroken.includes(needle.text));
  }
}

/** Limit of nested escapes: JSON in JSON in JSON, and percent signs that are themselves encoded. */
const MOST_ROUNDS = 5;

function decodeOnce(text: string): string {
  if (!/[\0\\%]/.test(text)) return text;
  const charOf = (_: string, hex: string) => String.fromCharCode(Number.parseInt(hex, 16));
  return text
    .replaceAll(/\\{1,16}u([0-9a-f]{4})/gi, charOf)
    .replaceAll(/\\{1,16}(["\\/])/g, "$1")
    .replaceAll(/%([0-9a-f]{2})/gi, charOf)
    .replaceAll("\0", "");
}

function needlesOf(secret: string): Needle[] {
  const bytes = Buffer.from(secret);
  const needles: Needle[] = [{ text: secret, isBase64: false }];
  for (const offset of [0, 1, 2]) {
    const encoded = Buffer.concat([Buffer.alloc(offset), bytes]).toString("base64");
    // The base64 characters at both ends also encode the neighbouring bytes, so they are cut off.
    const [from, to] = [Math.ceil((8 * offset) / 6), Math.floor((8 * (offset + bytes.length)) / 6)];
    const text = encoded.slice(from, to);
    const inUrl = text.replaceAll("+", "-").replaceAll("/", "_");
    needles.push({ text, isBase64: true });
    if (inUrl !== text) needles.push({ text: inUrl, isBase64: true });
  }
  return needles;
}

/** Character codes that a secret may consist of, by spelling. */
interface SpelledCodes {
  /** Codes of plain characters. */
  readonly run: Uint8Array;
  /** Codes in JSON escapes, including the characters of percent-encoding and line breaks. */
  readonly escaped: Uint8Array;
  /** Codes after a percent sign. */
  readonly encoded: Uint8Array;
}

function codesOf(needles: readonly Needle[]): SpelledCodes {
  const tableOf = (chars: string) => {
    const codes = new Uint8Array(256);
    for (const char of chars) codes[char.charCodeAt(0)] = 1;
    return codes;
  };
  const own = needles.map(({ text }) => text).join("");
  return {
    run: tableOf(own),
    escaped: tableOf(`${own}%0123456789abcdefABCDEF\t\n\r \0`),
    encoded: tableOf(`${own}%\0`),
  };
}

/** Bounded repetitions: a text of only backslashes must not take quadratic time. */
const ESCAPE = "\\\\{1,16}";
const BREAKS = `(?:\\s|${ESCAPE}(?:[nrt]|u00(?:0[9aAdD]|20))){0,4}`;

function spellingsOf({ text, isBase64 }: Needle): string {
  return [...text].map(charSpellings).join(isBase64 ? BREAKS : "");
}

function charSpellings(char: string): string {
  const literal = char.replace(/[\\^$.*+?()[\]{}|/]/, "\\$&");
  const units = Array.from({ length: char.length }, (_, i) => char.charCodeAt(i));
  const escapes = units.map((unit) => `${ESCAPE}u${hexOf(unit, 4)}`).join("");
  const percents = [...Buffer.from(char)]
    .map(
      (byte) =>
        `${asciiSpellings("%")}(?:${[..."25"].map(asciiSpellings).join("")}){0,3}${percentDigits(byte)}`,
    )
    .join("");
  const quoted = /["\\/]/.test(char) ? `|${ESCAPE}${literal}` : "";
  return `(?:${literal}|${escapes}|${percents}${quoted})`;
}

/** The two hexadecimal digits after a percent sign, in either case. Each digit may itself be escaped. */
function percentDigits(byte: number): string {
  const digits = [...byte.toString(16).padStart(2, "0")];
  return digits
    .map((digit) => [...new Set([digit, digit.toUpperCase()])].map(asciiSpellings).join("|"))
    .map((either) => `(?:${either})`)
    .join("");
}

function asciiSpellings(char: string): string {
  return `(?:${char}|${ESCAPE}u${hexOf(char.charCodeAt(0), 4)})`;
}

/** A pattern of the hexadecimal digits in either case. */
function hexOf(value: number, digits: number): string {
  const text = value.toString(16).padStart(digits, "0");
  return text.replaceAll(/[a-f]/g, (letter) => `[${letter}${letter.toUpperCase()}]`);
}

/** True if two hexadecimal digits of one of these codes follow a mark. */
function hasCode(
  bytes: Buffer,
  { from: first, mark, codes }: { from: number; mark: Buffer; codes: Uint8Array },
): boolean {
  for (let at = bytes.indexOf(mark, first); at >= 0; at = bytes.indexOf(mark, at + 1)) {
    const from = at + mark.length;
    const code = 16 * hexValue(bytes[from]) + hexValue(bytes[from + 1]);
    if (code >= 0 && codes[code] === 1) return true;
  }
  return false;
}

/** Returns -1000 for a character that is no digit, so that 16a + b stays negative with any other digit. */
function hexValue(code = 0): number {
  if (code >= 48 && code <= 57) return code - 48;
  const letter = code | 32;
  return letter >= 97 && letter <= 102 ? letter - 87 : -1000;
}

/** True if the bytes have line breaks after text that may be base64. */
function isWrapped(bytes: Buffer): boolean {
  for (const mark of ["\\n", "\\r", "\n"])
    for (let at = bytes.indexOf(mark); at >= 0; at = bytes.indexOf(mark, at + 1)) {
      const line = bytes.toString("latin1", Math.max(0, at - WRAPPED), at);
      if (line.length === WRAPPED && /^[A-Za-z0-9+/_-]+$/.test(line)) return true;
    }
  return false;
}
