/** Compiles the schema of a record to its decoder: no payload objects, no copies of what does not change.
 *  In: a zod schema made of the constructs below; another one is an error of the program, found when it is compiled.
 *  Out: the decoded value, or INVALID. The decoder alone decides what a record is; zod is asked only for the reason
 *  of a refusal. */
import type { z } from "zod";
import { isObject, RollbookError } from "../../base/index.ts";

export const INVALID = Symbol("invalid");
export type Decoder = (value: unknown) => unknown;

export function compileDecoder(schema: z.core.$ZodType): Decoder {
  const { def } = (schema as z.core.$ZodTypes)._zod;
  const decode = decoderOf(def);
  const checks = ("checks" in def ? (def.checks ?? []) : []).map(compileCheck);
  // A schema that is itself a check (z.int, z.email) hides it outside `checks`.
  if ("check" in def) throw unsupported(`the format ${def.check}`);
  const checked = withChecks(decode, checks);
  return def.type === "string" && checks.length > 0 ? rememberLast(checked) : checked;
}

/** Two checks at most for almost every field: written out, because a loop over closures costs more than they do. */
function withChecks(decode: Decoder, [first, second, ...rest]: readonly Check[]): Decoder {
  if (first === undefined) return decode;
  const checked: Decoder = (value) => {
    const decoded = decode(value);
    if (decoded === INVALID || !first(decoded)) return INVALID;
    return second === undefined || second(decoded) ? decoded : INVALID;
  };
  return withChecks(checked, rest);
}

/** Families, workers and revisions come again from record to record: then they are checked once. */
function rememberLast(decode: Decoder): Decoder {
  let last: unknown;
  return (value) => {
    if (value === last && value !== undefined) return value;
    const decoded = decode(value);
    if (decoded !== INVALID) last = decoded;
    return decoded;
  };
}

function decoderOf(def: z.core.$ZodTypes["_zod"]["def"]): Decoder {
  switch (def.type) {
    case "string":
    case "boolean":
    case "bigint":
      return (value) => (typeof value === def.type ? value : INVALID);
    case "number":
      return (value) => (Number.isFinite(value) ? value : INVALID);
    case "unknown":
      return (value) => value;
    case "literal":
      return oneOf(def.values);
    case "enum":
      return oneOf(Object.values(def.entries));
    case "optional":
      return orElse(undefined, compileDecoder(def.innerType));
    case "nullable":
      return orElse(null, compileDecoder(def.innerType));
    case "array":
      return arrayDecoder(compileDecoder(def.element));
    case "tuple":
      if (def.rest !== null) throw unsupported("a tuple of any length");
      return tupleDecoder(def.items.map(compileDecoder));
    case "object":
      if (def.catchall?._zod.def.type !== "never") throw unsupported("an object with unknown keys");
      return objectDecoder(def.shape);
    case "record":
      return mapDecoder(compileDecoder(def.keyType), compileDecoder(def.valueType));
    case "union":
      return "discriminator" in def
        ? taggedDecoder(def as z.core.$ZodDiscriminatedUnionDef)
        : firstDecoder(def.options.map(compileDecoder));
    case "pipe":
      if (!("transform" in def)) throw unsupported("a pipe that is no codec");
      return codecDecoder(def as z.core.$ZodCodecDef);
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

function oneOf(values: readonly unknown[]): Decoder {
  const [only] = values;
  if (values.length === 1) return (value) => (value === only ? value : INVALID);
  const known = new Set(values);
  return (value) => (known.has(value) ? value : INVALID);
}

function orElse(empty: undefined | null, decode: Decoder): Decoder {
  return (value) => (value === empty ? value : decode(value));
}

function arrayDecoder(decode: Decoder): Decoder {
  return (value) => {
    if (!Array.isArray(value)) return INVALID;
    let out = value;
    for (let i = 0; i < value.length; i++) {
      const decoded = decode(value[i]);
      if (decoded === INVALID) return INVALID;
      if (decoded === value[i]) continue;
      if (out === value) out = value.slice();
      out[i] = decoded;
    }
    return out;
  };
}

function tupleDecoder(items: readonly Decoder[]): Decoder {
  return (value) => {
    if (!Array.isArray(value) || value.length !== items.length) return INVALID;
    const decoded = items.map((decode, i) => decode(value[i]));
    return decoded.includes(INVALID) ? INVALID : decoded;
  };
}

function objectDecoder(shape: Readonly<Record<string, z.core.$ZodType>>): Decoder {
  const fields = new Map(
    Object.entries(shape).map(([key, schema]) => {
      const decode = compileDecoder(schema);
      return [key, { decode, required: decode(undefined) === INVALID }];
    }),
  );
  const required = [...fields.values()].filter((field) => field.required).length;
  return (value) => {
    if (!isObject(value)) return INVALID;
    let out = value;
    let found = 0;
    for (const key in value) {
      const field = fields.get(key);
      if (field === undefined) return INVALID;
      const item = value[key];
      const decoded = field.decode(item);
      if (decoded === INVALID) return INVALID;
      if (field.required) found++;
      if (decoded === item) continue;
      if (out === value) out = { ...value };
      out[key] = decoded;
    }
    return found === required ? out : INVALID;
  };
}

/** Names to values. A key __proto__ is kept: in a copy it is a key of its own, so assigning to it is safe. */
function mapDecoder(decodeKey: Decoder, decode: Decoder): Decoder {
  return (value) => {
    if (!isObject(value)) return INVALID;
    let out = value;
    for (const key in value) {
      if (decodeKey(key) === INVALID) return INVALID;
      const decoded = decode(value[key]);
      if (decoded === INVALID) return INVALID;
      if (decoded === value[key]) continue;
      if (out === value) out = { ...value };
      out[key] = decoded;
    }
    return out;
  };
}

function firstDecoder(members: readonly Decoder[]): Decoder {
  return (value) => {
    for (let i = 0; i < members.length; i++) {
      const decoded = members[i]!(value);
      if (decoded !== INVALID) return decoded;
    }
    return INVALID;
  };
}

/** By the one field that tells the members apart. */
function taggedDecoder(def: z.core.$ZodDiscriminatedUnionDef): Decoder {
  const members = new Map<unknown, Decoder>();
  for (const option of def.options as readonly z.core.$ZodTypes[]) {
    const object = option._zod.def;
    const tag = object.type === "object" ? (object.shape[def.discriminator] as z.core.$ZodTypes) : undefined;
    if (tag?._zod.def.type !== "literal") throw unsupported("a union whose tag is no literal");
    for (const value of tag._zod.def.values) members.set(value, compileDecoder(option));
  }
  return (value) => {
    const decode = isObject(value) ? members.get(value[def.discriminator]) : undefined;
    return decode === undefined ? INVALID : decode(value);
  };
}

function codecDecoder(def: z.core.$ZodCodecDef): Decoder {
  const [before, after] = [compileDecoder(def.in), compileDecoder(def.out)];
  return (value) => {
    const wire = before(value);
    if (wire === INVALID) return INVALID;
    const payload = { value: wire, issues: [] };
    const decoded = def.transform(wire as never, payload as never);
    return payload.issues.length === 0 ? after(decoded) : INVALID;
  };
}

type Check = (value: unknown) => boolean;

function compileCheck(check: z.core.$ZodCheck<never>): Check {
  const { def } = (check as unknown as z.core.$ZodChecks)._zod;
  switch (def.check) {
    case "string_format": {
      const { pattern } = def;
      // A sticky or global pattern has a memory.
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

/** A function of the schema's author: a predicate, or one that reports issues. */
function customCheck(check: z.core.$ZodCheck<never>): Check {
  const def = check._zod.def as { check: string; fn?: (value: unknown) => unknown };
  if (def.check !== "custom") throw unsupported(`the check ${def.check}`);
  const { fn } = def;
  if (fn !== undefined) return (value) => fn(value) === true;
  return (value) => {
    const payload = { value, issues: [] };
    check._zod.check(payload as never);
    return payload.issues.length === 0;
  };
}
