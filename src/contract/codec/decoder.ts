/** Compiles the schema of a record to a decoder of canonical JSON bytes: text, canonical form and schema in one pass,
 *  without copies. In: a zod schema made of the constructs below. Any other construct is a programming error, thrown
 *  when the schema is compiled. Out: the decoded value, or INVALID. Only the decoder decides if bytes are a valid
 *  record; zod only supplies the reason of a refusal. */
import type { z } from "zod";
import { canonicalize, DIGEST_PATTERN, RollbookError } from "../../base/index.ts";
import {
  ByteSource,
  INVALID,
  type Read,
  readAny,
  readDigest,
  readList,
  readMap,
  readNumber,
  readString,
  take,
  takeString,
} from "./byte-source.ts";

export type Decoder = (bytes: Uint8Array) => unknown;

/** Decodes whole byte strings: no byte may follow the value. */
export function compileDecoder(schema: z.core.$ZodType): Decoder {
  const read = compile(schema);
  return (bytes) => {
    const source = new ByteSource(bytes);
    const value = read(source);
    return source.at === bytes.length ? value : INVALID;
  };
}

function compile(schema: z.core.$ZodType): Read {
  const { def } = (schema as z.core.$ZodTypes)._zod;
  // A schema that is itself a check (z.int, z.email) stores the check outside `checks`.
  if ("check" in def) throw unsupported(`the format ${def.check}`);
  const checks = "checks" in def ? (def.checks ?? []) : [];
  const read = isDigestPattern(checks) ? readDigest : withChecks(readerOf(def), checks.map(compileCheck));
  return def.type === "string" ? rememberLast(read) : read;
}

/** Almost every field has at most two checks. They are unrolled, because a loop over closures costs more than the
 *  checks. */
function withChecks(read: Read, [first, second, ...rest]: readonly Check[]): Read {
  if (first === undefined) return read;
  const checked: Read = (source) => {
    const value = read(source);
    if (value === INVALID || !first(value)) return INVALID;
    return second === undefined || second(value) ? value : INVALID;
  };
  return withChecks(checked, rest);
}

/** Families, workers and revisions repeat from record to record. The last string is reused, so it is checked only
 *  once. */
function rememberLast(read: Read): Read {
  let last: string | undefined;
  return (source) => {
    if (last !== undefined && takeString(source, last)) return last;
    const value = read(source);
    if (value !== INVALID) last = value as string;
    return value;
  };
}

function readerOf(def: z.core.$ZodTypes["_zod"]["def"]): Read {
  switch (def.type) {
    case "string":
      return readString;
    case "number":
      return readNumber;
    case "unknown":
      return readAny;
    case "literal":
      return wordReader(def.values);
    case "enum":
      return wordReader(Object.values(def.entries));
    case "boolean":
      return wordReader([true, false]);
    case "optional": // the object handles absence
      return compile(def.innerType);
    case "nullable":
      return firstReader([wordReader([null]), compile(def.innerType)]);
    case "array": {
      const read = compile(def.element);
      return (source) => readList(source, read);
    }
    case "tuple":
      if (def.rest !== null) throw unsupported("a tuple of any length");
      return tupleReader(def.items.map(compile));
    case "object":
      if (def.catchall?._zod.def.type !== "never") throw unsupported("an object with unknown keys");
      return objectReader(def.shape);
    case "record": {
      const [readKey, read] = [compile(def.keyType), compile(def.valueType)];
      return (source) => readMap(source, readKey, read);
    }
    case "union": // members of a discriminated union exclude each other: take the first match
      return firstReader(def.options.map(compile));
    case "pipe":
      if (!("transform" in def)) throw unsupported("a pipe that is no codec");
      return codecReader(def as z.core.$ZodCodecDef);
    default:
      throw unsupported(`the type ${def.type}`);
  }
}

function unsupported(what: string): RollbookError {
  return new RollbookError(
    "unsupported-schema",
    { what },
    `The schema of a record holds ${what}, which the decoder cannot compile. Use another construct, or teach the decoder.`,
  );
}

/** Reads one of a few values, each with a single spelling. */
function wordReader(values: readonly unknown[]): Read {
  const words = values.map((value) => ({ value, word: Buffer.from(canonicalize(value)) }));
  return (source) => {
    for (let i = 0; i < words.length; i++) if (take(source, words[i]!.word)) return words[i]!.value;
    return INVALID;
  };
}

function firstReader(readers: readonly Read[]): Read {
  return (source) => {
    const { at, depth } = source;
    for (let i = 0; i < readers.length; i++) {
      source.at = at;
      source.depth = depth;
      const value = readers[i]!(source);
      if (value !== INVALID) return value;
    }
    return INVALID;
  };
}

function tupleReader(items: readonly Read[]): Read {
  return (source) => {
    let next = 0;
    const values = readList(source, () => (next < items.length ? items[next++]!(source) : INVALID));
    return next === items.length ? values : INVALID;
  };
}

/** Keys are known and come in one order, so each key is either next in the text or absent. */
function objectReader(shape: Readonly<Record<string, z.core.$ZodType>>): Read {
  const fields = Object.keys(shape)
    .sort()
    .map((key) => ({
      key,
      word: Buffer.from(`${canonicalize(key)}:`),
      read: compile(shape[key]!),
      required: (shape[key] as z.core.$ZodTypes)._zod.def.type !== "optional",
    }));
  return (source) => {
    if (!source.open("{")) return INVALID;
    const out: Record<string, unknown> = {};
    let empty = true;
    for (let i = 0; i < fields.length; i++) {
      const { key, word, read, required } = fields[i]!;
      const start = source.at;
      if ((empty || source.comma()) && take(source, word)) {
        const value = read(source);
        if (value === INVALID) return INVALID;
        out[key] = value;
        empty = false;
      } else {
        if (required) return INVALID;
        source.at = start;
      }
    }
    return source.close("}") ? out : INVALID;
  };
}

function codecReader(def: z.core.$ZodCodecDef): Read {
  const { def: out } = (def.out as z.core.$ZodTypes)._zod;
  if (out.type !== "bigint") throw unsupported(`a codec to ${out.type}`);
  const decode: Read = (source) => {
    const wire = read(source);
    return wire === INVALID ? INVALID : def.transform(wire as never, { value: wire, issues: [] } as never);
  };
  const read = compile(def.in);
  return withChecks(decode, (out.checks ?? []).map(compileCheck));
}

function isDigestPattern(checks: readonly z.core.$ZodCheck<never>[]): boolean {
  const def = checks[0]?._zod.def as { pattern?: RegExp } | undefined;
  return checks.length === 1 && def?.pattern === DIGEST_PATTERN;
}

type Check = (value: unknown) => boolean;

function compileCheck(check: z.core.$ZodCheck<never>): Check {
  const { def } = (check as unknown as z.core.$ZodChecks)._zod;
  switch (def.check) {
    case "string_format": {
      const { pattern } = def;
      // A sticky or global pattern keeps state between calls.
      if (pattern === undefined || pattern.global || pattern.sticky)
        throw unsupported(`the format ${def.format}`);
      return (value) => pattern.test(value as string);
    }
    case "min_length":
      return (value) => (value as { length: number }).length >= def.minimum;
    case "max_length":
      return (value) => (value as { length: number }).length <= def.maximum;
    case "number_format":
      if (def.format !== "safeint") throw unsupported(`the format ${def.format}`);
      return Number.isSafeInteger;
    case "greater_than":
      return def.inclusive
        ? (value) => (value as number) >= (def.value as number)
        : (value) => (value as number) > (def.value as number);
    case "less_than":
      return def.inclusive
        ? (value) => (value as number) <= (def.value as number)
        : (value) => (value as number) < (def.value as number);
    default:
      return customCheck(check);
  }
}

/** A function of the schema's author: a predicate, or a function that reports issues. */
function customCheck(check: z.core.$ZodCheck<never>): Check {
  const def = check._zod.def as { check: string; fn?: (value: unknown) => unknown };
  if (def.check !== "custom") throw unsupported(`the check ${def.check}`);
  const { fn } = def;
  if (fn !== undefined) return (value) => fn(value) === true;
  return (value) => {
    const payload = { value, issues: [] };
    void check._zod.check(payload as never);
    return payload.issues.length === 0;
  };
}
