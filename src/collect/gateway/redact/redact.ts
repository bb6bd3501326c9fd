/** What must not be recorded: keys the gateway knows, and whatever the configuration or a hook names.
 *  In: a JSON value about to be recorded. Out: the same value, or a copy with the secrets replaced. Bodies of replies that
 *  succeed pass untouched: this is about the record. */
import type { Json } from "../../../base/index.ts";
import { define, type JsonObject, MAX_NESTING } from "../dialects/index.ts";
import { MIN_SECRET, REDACTED, SecretFinder } from "./secrets.ts";

export type Redact = (value: Json) => Json;

/** What is looked for, in everything that is written. */
export interface RedactOptions {
  /** A hook of the program that opens the gateway. */
  readonly redact: Redact | undefined;
  /** Undefined without secrets. */
  readonly secrets: SecretFinder | undefined;
  /** What they match is not recorded, in texts as they are and as they are decoded. */
  readonly patterns: readonly RegExp[];
}

/** Secrets that are too short to look for are left out. */
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

/** A value that is recorded: the same object if there is nothing to hide in it. */
export function redactValue(given: Json, options: RedactOptions): Json {
  const value = options.redact === undefined ? given : options.redact(given);
  if (options.secrets === undefined && options.patterns.length === 0) return value;
  return redactStrings(value, (text) => redactText(text, options)) as Json;
}

/** Deeper than text that is parsed nests. */
const MAX_DEPTH = 2 * MAX_NESTING;

/** Applies `redact` to every string, keys of objects included. Copies only where something changed. */
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
