/** Redacts values before they are recorded: keys known to the gateway, and matches of the configuration or a hook.
 *  In: a JSON value about to be recorded. Out: the same value, or a copy with the secrets replaced. Does not change
 *  the bodies of successful replies: redaction concerns the record. */
import type { Json } from "../../../base/index.ts";
import { define, type JsonObject, MAX_NESTING } from "../dialects/index.ts";
import { MIN_SECRET, REDACTED, SecretFinder } from "./secrets.ts";

export type Redact = (value: Json) => Json;

/** Search criteria for everything that is written. */
export interface RedactOptions {
  /** A hook of the program that opens the gateway. */
  readonly redact: Redact | undefined;
  /** Undefined if there are no secrets. */
  readonly secrets: SecretFinder | undefined;
  /** Matches are not recorded. Patterns apply to texts as they are and after decoding. */
  readonly patterns: readonly RegExp[];
}

/** Omits secrets that are too short to search for. */
export function redactOptions(
  secrets: readonly string[],
  { patterns, redact }: { patterns: readonly RegExp[]; redact?: Redact | undefined },
): RedactOptions {
  const sought = secrets.filter((secret) => secret.length >= MIN_SECRET);
  return {
    redact,
    secrets: sought.length === 0 ? undefined : new SecretFinder(sought),
    patterns: patterns.map((pattern) => new RegExp(pattern.source, addFlag(pattern.flags, "g"))),
  };
}

export function redactText(text: string, { secrets, patterns }: RedactOptions): string {
  let out = secrets === undefined ? text : secrets.redact(text);
  for (const pattern of patterns) out = out.replace(pattern, REDACTED);
  return out;
}

/** The value to record: the same object if there is nothing to redact. */
export function redactValue(given: Json, options: RedactOptions): Json {
  const value = options.redact === undefined ? given : options.redact(given);
  if (options.secrets === undefined && options.patterns.length === 0) return value;
  return redactStrings(value, (text) => redactText(text, options)) as Json;
}

/** Deeper than any parsed text can nest. */
const MAX_DEPTH = 2 * MAX_NESTING;

/** Applies `redact` to every string, including object keys. Copies only objects that changed. */
export function redactStrings(value: unknown, redact: (text: string) => string, depth = 0): unknown {
  if (typeof value === "string") return redact(value);
  if (typeof value === "number") return redact(String(value)) === String(value) ? value : REDACTED;
  if (typeof value !== "object" || value === null) return value;
  if (depth >= MAX_DEPTH) return REDACTED;
  return Array.isArray(value)
    ? mapList(value, redact, depth + 1)
    : mapObject(value as JsonObject, redact, depth + 1);
}

function mapList(list: unknown[], redact: (text: string) => string, depth: number): unknown[] {
  let copy: unknown[] | undefined;
  for (const [i, item] of list.entries()) {
    const next = redactStrings(item, redact, depth);
    if (next !== item) {
      copy ??= [...list];
      copy[i] = next;
    }
  }
  return copy ?? list;
}

function mapObject(object: JsonObject, redact: (text: string) => string, depth: number): JsonObject {
  let changed = false;
  const out: JsonObject = {};
  for (const [key, item] of Object.entries(object)) {
    const [name, next] = [redact(key), redactStrings(item, redact, depth)];
    changed ||= name !== key || next !== item;
    define(out, name, next);
  }
  return changed ? out : object;
}

function addFlag(flags: string, flag: string): string {
  return flags.includes(flag) ? flags : flags + flag;
}
