/** Compiles a schema to a decoder that says yes quickly: no payload objects, no copies of what does not change.
 *  In: a zod schema. Out: the decoded value, or INVALID, and zod then says why. It accepts nothing that zod does not
 *  (a property of its tests); constructs it does not know are left to zod. */
import { z } from "zod";

export const INVALID = Symbol("invalid");
export type Decoder = (value: unknown) => unknown;

export function compileDecoder(schema: z.core.$ZodType): Decoder {
  const { def } = (schema as z.core.$ZodTypes)._zod;
  // A schema that is itself a check (z.int, z.email) hides it outside `checks`.
  const decode = "check" in def ? undefined : decoderOf(def);
  if (decode === undefined) return (value) => decodeByZod(schema, value);
  const checks = ("checks" in def ? (def.checks ?? []) : []).map(compileCheck);
  return withChecks(decode, checks);
}

/** Two checks at most for almost every field: written out, because a loop over closures costs more than they do. */
export function withChecks<In>(
  decode: (value: In) => unknown,
  [first, second, ...rest]: readonly Check[],
): (value: In) => unknown {
  if (first === undefined) return decode;
  const checked = (value: In) => {
    const decoded = decode(value);
    if (decoded === INVALID || !first(decoded)) return INVALID;
    return second === undefined || second(decoded) ? decoded : INVALID;
  };
  return withChecks(checked, rest);
}

function decoderOf(def: z.core.$ZodTypes["_zod"]["def"]): Decoder | undefined {
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
      return def.rest === null ? tupleDecoder(def.items.map(compileDecoder)) : undefined;
    case "object":
      return def.catchall?._zod.def.type === "never" ? objectDecoder(def.shape) : undefined;
    case "union":
      return "discriminator" in def ? unionDecoder(def as z.core.$ZodDiscriminatedUnionDef) : undefined;
    case "pipe":
      return "transform" in def ? codecDecoder(def as z.core.$ZodCodecDef) : undefined;
    default:
      return undefined;
  }
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
    if (typeof value !== "object" || value === null || Array.isArray(value)) return INVALID;
    const before = value as Record<string, unknown>;
    let out = before;
    let found = 0;
    for (const key in before) {
      const field = fields.get(key);
      if (field === undefined) return INVALID;
      const item = before[key];
      const decoded = field.decode(item);
      if (decoded === INVALID) return INVALID;
      if (field.required) found++;
      if (decoded === item) continue;
      if (out === before) out = { ...before };
      out[key] = decoded;
    }
    return found === required ? out : INVALID;
  };
}

/** By the one field that tells the members apart; a member without a plain literal there leaves it all to zod. */
function unionDecoder(def: z.core.$ZodDiscriminatedUnionDef): Decoder | undefined {
  const members = new Map<unknown, Decoder>();
  for (const option of def.options as readonly z.core.$ZodTypes[]) {
    const object = option._zod.def;
    const tag = object.type === "object" ? (object.shape[def.discriminator] as z.core.$ZodTypes) : undefined;
    if (tag?._zod.def.type !== "literal") return undefined;
    for (const value of tag._zod.def.values) members.set(value, compileDecoder(option));
  }
  return (value) => {
    if (typeof value !== "object" || value === null) return INVALID;
    const decode = members.get((value as Record<string, unknown>)[def.discriminator]);
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

export function compileCheck(check: z.core.$ZodCheck<never>): Check {
  const { def } = (check as unknown as z.core.$ZodChecks)._zod;
  switch (def.check) {
    case "string_format": {
      const { pattern } = def;
      // A sticky or global pattern has a memory; zod resets it.
      return pattern === undefined || pattern.global || pattern.sticky
        ? checkByZod(check)
        : (value) => pattern.test(value as string);
    }
    case "min_length":
      return (value) => (value as { length: number }).length >= def.minimum;
    case "max_length":
      return (value) => (value as { length: number }).length <= def.maximum;
    case "number_format":
      return def.format === "safeint" ? Number.isSafeInteger : checkByZod(check);
    case "greater_than":
      return def.inclusive
        ? (value) => (value as number) >= (def.value as number)
        : (value) => (value as number) > (def.value as number);
    case "less_than":
      return def.inclusive
        ? (value) => (value as number) <= (def.value as number)
        : (value) => (value as number) < (def.value as number);
    default: {
      const refine = (def as { fn?: (value: unknown) => unknown }).fn;
      return refine === undefined ? checkByZod(check) : (value) => refine(value) === true;
    }
  }
}

function checkByZod(check: z.core.$ZodCheck<never>): Check {
  return (value) => {
    const payload = { value, issues: [] };
    const later = check._zod.check(payload as never);
    return later === undefined && payload.issues.length === 0;
  };
}

function decodeByZod(schema: z.core.$ZodType, value: unknown): unknown {
  const result = z.safeDecode(schema, value as never);
  return result.success ? result.data : INVALID;
}
