/** A strict JSON reader for external text. Refuses duplicate keys, deep nesting, lone surrogates and numbers that
 *  overflow, and names the position. JSON.parse keeps the last duplicate silently; a record must not. */
import { isAscii } from "node:buffer";
import { type Json, MAX_DEPTH } from "./canonical-json.ts";
import { RollbookError } from "./errors.ts";

/** `remedy` is the next step of the error: a sentence. */
export function parseJson(text: string, where = "input", remedy?: string): Json {
  return new Reader(text, where, { wide: false, remedy }).whole() as Json;
}

export type WideJson =
  | null
  | boolean
  | number
  | bigint
  | string
  | readonly WideJson[]
  | { readonly [key: string]: WideJson };

/** As parseJson, for formats that write 64-bit integers as JSON numbers: integers beyond ±2^53 become bigints. */
export function parseWideJson(text: string, where = "input"): WideJson {
  return new Reader(text, where, { wide: true }).whole();
}

/** Decodes `bytes` as UTF-8. Refuses invalid sequences instead of replacing them. */
export function decodeUtf8(bytes: Uint8Array, where = "input"): string {
  // Most records are plain ASCII, which needs no decoder.
  if (isAscii(bytes)) return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("latin1");
  try {
    return decoder.decode(bytes);
  } catch (cause) {
    throw new RollbookError("bad-json", { where }, `${where}: not valid UTF-8. Save the file as UTF-8.`, {
      cause,
    });
  }
}

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
/** A string without escapes, control characters or surrogates: the text between the quotes is its value. */
const PLAIN_STRING = /"[^"\\\u0000-\u001f\ud800-\udfff]*"/y;

class Reader {
  #at = 0;
  readonly #text: string;
  readonly #where: string;
  readonly #wide: boolean;
  readonly #remedy: string;

  constructor(text: string, where: string, options: { wide: boolean; remedy?: string | undefined }) {
    this.#text = text;
    this.#where = where;
    this.#wide = options.wide;
    this.#remedy = options.remedy ?? "Correct the JSON and try again.";
  }

  whole(): WideJson {
    const value = this.#value(0);
    this.#space();
    if (this.#at < this.#text.length) throw this.#fault("bad-json", "unexpected text after the value");
    return value;
  }

  #value(depth: number): WideJson {
    this.#space();
    switch (this.#text[this.#at]) {
      case "{":
        this.#limit(depth);
        return this.#object(depth);
      case "[":
        this.#limit(depth);
        return this.#array(depth);
      case '"':
        return this.#string();
      case "t":
        return this.#word("true", true);
      case "f":
        return this.#word("false", false);
      case "n":
        return this.#word("null", null);
      default:
        return this.#number();
    }
  }

  /** Same limit as canonicalize, so every readable value can be sealed. */
  #limit(depth: number): void {
    if (depth >= MAX_DEPTH) throw this.#fault("too-deep", `nested more than ${MAX_DEPTH} levels deep`);
  }

  #object(depth: number): WideJson {
    const object: Record<string, WideJson> = {};
    this.#at++;
    this.#space();
    if (this.#take("}")) return object;
    for (;;) {
      this.#space();
      if (this.#text[this.#at] !== '"') throw this.#fault("bad-json", "expected a quoted key");
      const start = this.#at;
      const key = this.#string();
      if (Object.hasOwn(object, key)) {
        this.#at = start;
        throw this.#fault("duplicate-key", `the key ${JSON.stringify(key)} appears twice in one object`, {
          key,
        });
      }
      this.#space();
      if (!this.#take(":")) throw this.#fault("bad-json", "expected ':'");
      const value = this.#value(depth + 1);
      // A plain assignment to __proto__ would change the prototype instead of adding a key.
      if (key === "__proto__")
        Object.defineProperty(object, key, { value, enumerable: true, configurable: true, writable: true });
      else object[key] = value;
      this.#space();
      if (this.#take("}")) return object;
      if (!this.#take(",")) throw this.#fault("bad-json", "expected ',' or '}'");
    }
  }

  #array(depth: number): WideJson {
    const items: WideJson[] = [];
    this.#at++;
    this.#space();
    if (this.#take("]")) return items;
    for (;;) {
      items.push(this.#value(depth + 1));
      this.#space();
      if (this.#take("]")) return items;
      if (!this.#take(",")) throw this.#fault("bad-json", "expected ',' or ']'");
    }
  }

  #string(): string {
    const start = this.#at;
    PLAIN_STRING.lastIndex = start;
    if (!PLAIN_STRING.test(this.#text)) return this.#escapedString();
    this.#at = PLAIN_STRING.lastIndex;
    return this.#text.slice(start + 1, this.#at - 1);
  }

  #escapedString(): string {
    const start = this.#at;
    let end = start + 1;
    for (;;) {
      end = this.#text.indexOf('"', end);
      if (end < 0) throw this.#fault("bad-json", "this string never ends");
      let slashes = 0;
      while (this.#text[end - 1 - slashes] === "\\") slashes++;
      if (slashes % 2 === 0) break;
      end++;
    }
    let value: string;
    try {
      value = JSON.parse(this.#text.slice(start, end + 1)) as string;
    } catch (cause) {
      throw this.#fault("bad-json", "bad string: unescaped control character or unknown escape", {}, cause);
    }
    if (!value.isWellFormed()) throw this.#fault("lone-surrogate", "this string holds a lone surrogate");
    this.#at = end + 1;
    return value;
  }

  #number(): number | bigint {
    const start = this.#at;
    NUMBER.lastIndex = start;
    if (!NUMBER.test(this.#text))
      throw this.#fault(
        "bad-json",
        start >= this.#text.length ? "the text ends here" : "expected a JSON value",
      );
    const digits = this.#text.slice(start, NUMBER.lastIndex);
    const value = Number(digits);
    if (!Number.isFinite(value))
      throw this.#fault("non-finite-number", `${digits.slice(0, 40)} overflows a double`);
    this.#at = NUMBER.lastIndex;
    // 20 digits hold every u64. Longer numbers would be refused later, after more work.
    if (this.#wide && !Number.isSafeInteger(value) && /^-?\d{16,20}$/.test(digits)) return BigInt(digits);
    return value;
  }

  #word<T extends boolean | null>(word: string, value: T): T {
    if (!this.#text.startsWith(word, this.#at)) throw this.#fault("bad-json", "expected a JSON value");
    this.#at += word.length;
    return value;
  }

  #take(character: string): boolean {
    if (this.#text[this.#at] !== character) return false;
    this.#at++;
    return true;
  }

  #space(): void {
    for (;;) {
      const unit = this.#text.charCodeAt(this.#at);
      if (unit !== 32 && unit !== 10 && unit !== 13 && unit !== 9) return;
      this.#at++;
    }
  }

  #fault(code: string, what: string, fields: Record<string, unknown> = {}, cause?: unknown): RollbookError {
    const before = this.#text.slice(0, this.#at);
    const line = before.split("\n").length;
    const column = this.#at - before.lastIndexOf("\n");
    // A location that ends with a line number is one line of a file, so only the column is added.
    const at =
      line === 1 && /:\d+$/.test(this.#where)
        ? `${this.#where}:${column}`
        : `${this.#where}:${line}:${column}`;
    return new RollbookError(
      code,
      { where: this.#where, line, column, ...fields },
      `${at}: ${what}. ${this.#remedy}`,
      { cause },
    );
  }
}
