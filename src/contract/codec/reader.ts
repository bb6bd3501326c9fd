/** Compiles a schema to a reader of canonical JSON bytes: text, canonical form and schema in one pass.
 *  In: a zod schema. Out: the decoded value, or INVALID, and the long way (JSON.parse, canonical form, zod) then
 *  decides and says why. It accepts nothing that the long way does not (a property of its tests); escapes, letters
 *  beyond ASCII and constructs it does not know are left to the long way. */
import type { z } from "zod";
import { canonicalize, DIGEST_PATTERN } from "../../base/index.ts";
import { compileCheck, compileDecoder, INVALID, withChecks } from "./decoder.ts";

/** Where reading stands. */
class Source {
  readonly bytes: Buffer;
  at = 0;

  constructor(bytes: Uint8Array) {
    this.bytes = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  /** A string of its own: a slice of one long text would keep all of it in memory. */
  text(from: number, to: number): string {
    return this.bytes.toString("latin1", from, to);
  }
}

/** Reads one value and moves on behind it; after INVALID the source is of no further use. */
type Reader = (source: Source) => unknown;

/** A reader of whole byte strings: nothing may stand behind the value. */
export function compileReader(schema: z.core.$ZodType): (bytes: Uint8Array) => unknown {
  const read = readerOf(schema);
  return (bytes) => {
    const source = new Source(bytes);
    const value = read(source);
    return source.at === bytes.length ? value : INVALID;
  };
}

function readerOf(schema: z.core.$ZodType): Reader {
  const { def } = (schema as z.core.$ZodTypes)._zod;
  // A schema that is itself a check (z.int, z.email) hides it outside `checks`.
  const read = "check" in def ? undefined : shapedReader(def);
  if (read === undefined) return decodedReader(compileDecoder(schema));
  const checks = "checks" in def ? (def.checks ?? []) : [];
  const checked = isDigestPattern(checks) ? readDigest : withChecks(read, checks.map(compileCheck));
  return def.type === "string" ? rememberingReader(checked) : checked;
}

/** Families, workers and revisions come again from record to record: then one string serves, checked once. */
function rememberingReader(read: Reader): Reader {
  let last: string | undefined;
  return (source) => {
    if (last !== undefined && takeString(source, last)) return last;
    const value = read(source);
    if (value !== INVALID) last = value as string;
    return value;
  };
}

function shapedReader(def: z.core.$ZodTypes["_zod"]["def"]): Reader | undefined {
  switch (def.type) {
    case "string":
      return readString;
    case "number":
      return readNumber;
    case "literal":
      return wordReader(def.values);
    case "enum":
      return wordReader(Object.values(def.entries));
    case "boolean":
      return wordReader([true, false]);
    case "optional": // absent is for the object to see
      return readerOf(def.innerType);
    case "nullable":
      return firstReader([wordReader([null]), readerOf(def.innerType)]);
    case "array":
      return arrayReader(readerOf(def.element));
    case "object":
      return def.catchall?._zod.def.type === "never" ? objectReader(def.shape) : undefined;
    case "union": // members of a discriminated one exclude each other: the first that fits is the one
      return firstReader(def.options.map(readerOf));
    case "pipe":
      return "transform" in def ? codecReader(def as z.core.$ZodCodecDef) : undefined;
    default:
      return undefined;
  }
}

/** Any JSON, and then the decoder. */
function decodedReader(decode: (value: unknown) => unknown): Reader {
  return (source) => {
    const value = readAny(source, 0);
    return value === INVALID ? INVALID : decode(value);
  };
}

function codecReader(def: z.core.$ZodCodecDef): Reader {
  const [read, decode] = [readerOf(def.in), compileDecoder(def.out)];
  return (source) => {
    const wire = read(source);
    if (wire === INVALID) return INVALID;
    const payload = { value: wire, issues: [] };
    const decoded = def.transform(wire as never, payload as never);
    return payload.issues.length === 0 ? decode(decoded) : INVALID;
  };
}

/** One of a few values, each written in one way only. */
function wordReader(values: readonly unknown[]): Reader {
  const words = values.map((value) => ({ value, word: Buffer.from(canonicalize(value)) }));
  return (source) => {
    for (let i = 0; i < words.length; i++) if (take(source, words[i]!.word)) return words[i]!.value;
    return INVALID;
  };
}

function firstReader(readers: readonly Reader[]): Reader {
  return (source) => {
    const start = source.at;
    for (let i = 0; i < readers.length; i++) {
      source.at = start;
      const value = readers[i]!(source);
      if (value !== INVALID) return value;
    }
    return INVALID;
  };
}

function arrayReader(read: Reader): Reader {
  return (source) => {
    const { bytes } = source;
    if (bytes[source.at++] !== OPEN_BRACKET) return INVALID;
    const out: unknown[] = [];
    if (bytes[source.at] === CLOSE_BRACKET) {
      source.at++;
      return out;
    }
    for (;;) {
      const value = read(source);
      if (value === INVALID) return INVALID;
      out.push(value);
      const next = bytes[source.at++];
      if (next === CLOSE_BRACKET) return out;
      if (next !== COMMA) return INVALID;
    }
  };
}

/** Keys are known and come in one order, so each is either the next thing in the text or absent. */
function objectReader(shape: Readonly<Record<string, z.core.$ZodType>>): Reader {
  const fields = Object.keys(shape)
    .sort()
    .map((key) => ({
      key,
      word: Buffer.from(`${canonicalize(key)}:`),
      read: readerOf(shape[key]!),
      required: compileDecoder(shape[key]!)(undefined) === INVALID,
    }));
  return (source) => {
    const { bytes } = source;
    if (bytes[source.at++] !== OPEN_BRACE) return INVALID;
    const out: Record<string, unknown> = {};
    let empty = true;
    for (let i = 0; i < fields.length; i++) {
      const { key, word, read, required } = fields[i]!;
      const start = source.at;
      if (!empty && bytes[start] === COMMA) source.at++;
      if ((empty || source.at > start) && take(source, word)) {
        const value = read(source);
        if (value === INVALID) return INVALID;
        out[key] = value;
        empty = false;
      } else {
        if (required) return INVALID;
        source.at = start;
      }
    }
    return bytes[source.at++] === CLOSE_BRACE ? out : INVALID;
  };
}

const [QUOTE, COMMA, COLON, ZERO, NINE] = [34, 44, 58, 48, 57] as const;
const [OPEN_BRACE, CLOSE_BRACE, OPEN_BRACKET, CLOSE_BRACKET] = [123, 125, 91, 93] as const;
const DIGEST_START = Buffer.from('"sha256:');
const DIGEST_DIGITS = 64;

/** 1 for what stands in a string as it is, 2 for a digit in the lower hexadecimals too. */
const LETTERS = Uint8Array.from({ length: 256 }, (_, code) => {
  if (code < 0x20 || code > 0x7f || code === QUOTE || code === 0x5c) return 0;
  return /[0-9a-f]/.test(String.fromCharCode(code)) ? 2 : 1;
});

function take(source: Source, word: Uint8Array): boolean {
  const { bytes, at } = source;
  for (let i = 0; i < word.length; i++) if (bytes[at + i] !== word[i]) return false;
  source.at = at + word.length;
  return true;
}

/** `text` in quotes; it holds nothing that would have to be escaped. */
function takeString(source: Source, text: string): boolean {
  const { bytes, at } = source;
  const end = at + text.length + 1;
  if (bytes[at] !== QUOTE || bytes[end] !== QUOTE) return false;
  for (let i = 0; i < text.length; i++) if (bytes[at + 1 + i] !== text.charCodeAt(i)) return false;
  source.at = end + 1;
  return true;
}

function readString(source: Source): string | typeof INVALID {
  const { bytes } = source;
  const start = source.at + 1;
  if (bytes[start - 1] !== QUOTE) return INVALID;
  let end = start;
  while (LETTERS[bytes[end]!]! > 0) end++;
  source.at = end + 1;
  return bytes[end] === QUOTE ? source.text(start, end) : INVALID;
}

function isDigestPattern(checks: readonly z.core.$ZodCheck<never>[]): boolean {
  const def = checks[0]?._zod.def as { pattern?: RegExp } | undefined;
  return checks.length === 1 && def?.pattern === DIGEST_PATTERN;
}

function readDigest(source: Source): string | typeof INVALID {
  const { bytes, at } = source;
  if (!take(source, DIGEST_START)) return INVALID;
  const end = source.at + DIGEST_DIGITS;
  for (let i = source.at; i < end; i++) if (LETTERS[bytes[i]!] !== 2) return INVALID;
  source.at = end + 1;
  return bytes[end] === QUOTE ? source.text(at + 1, end) : INVALID;
}

function readNumber(source: Source): number | typeof INVALID {
  const { bytes, at: start } = source;
  let at = start;
  let value = 0;
  for (; bytes[at]! >= ZERO && bytes[at]! <= NINE; at++) value = value * 10 + bytes[at]! - ZERO;
  const digits = at - start;
  source.at = at;
  // Almost every number is a short whole one.
  if (digits > 0 && digits <= 15 && !isNumeric(bytes[at]!) && (digits === 1 || bytes[start] !== ZERO))
    return value;
  while (isNumeric(bytes[source.at]!)) source.at++;
  const text = source.text(start, source.at);
  return text !== "" && String(Number(text)) === text ? Number(text) : INVALID;
}

/** What a number may be written with: a digit, or one of `. e E + -`. */
function isNumeric(code: number): boolean {
  return (
    (code >= ZERO && code <= NINE) || code === 46 || code === 101 || code === 69 || code === 43 || code === 45
  );
}

/** Deeper values are left to the long way, which knows the limit; schemas add few levels of their own. */
const MOST_LEVELS = 64;

const readWord = wordReader([true, false, null]);

function readAny(source: Source, depth: number): unknown {
  switch (source.bytes[source.at]) {
    case QUOTE:
      return readString(source);
    case OPEN_BRACE:
      return depth < MOST_LEVELS ? readObject(source, depth + 1) : INVALID;
    case OPEN_BRACKET:
      return depth < MOST_LEVELS ? arrayReader((inner) => readAny(inner, depth + 1))(source) : INVALID;
    case 102:
    case 110:
    case 116:
      return readWord(source);
    default:
      return readNumber(source);
  }
}

function readObject(source: Source, depth: number): unknown {
  const { bytes } = source;
  const out: Record<string, unknown> = {};
  source.at++;
  if (bytes[source.at] === CLOSE_BRACE) {
    source.at++;
    return out;
  }
  let previous: string | undefined;
  for (;;) {
    const key = readString(source);
    // A plain assignment to __proto__ would change the prototype instead of adding a key.
    if (key === INVALID || key === "__proto__" || bytes[source.at++] !== COLON) return INVALID;
    if (previous !== undefined && key <= previous) return INVALID;
    previous = key;
    const value = readAny(source, depth);
    if (value === INVALID) return INVALID;
    out[key] = value;
    const next = bytes[source.at++];
    if (next === CLOSE_BRACE) return out;
    if (next !== COMMA) return INVALID;
  }
}
