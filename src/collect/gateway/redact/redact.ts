/** What must not be recorded: keys the gateway knows, and whatever the configuration or a hook names.
 *  In: a JSON value about to be recorded. Out: the same value, or a copy with the secrets replaced. Bodies that pass
 *  through are not touched: this is about the record. */
import type { Json } from "../../../base/index.ts";
import { define, type JsonObject, MAX_NESTING } from "../dialects/index.ts";

export type Redact = (value: Json) => Json;

export const REDACTED = "[redacted]";
const BACKSLASH = 0x5c;

/** Undefined if there is nothing to look for. */
export function redactText(
  secrets: readonly string[],
  patterns: readonly RegExp[],
): ((text: string) => string) | undefined {
  const known = sought(secrets);
  const global = patterns.map((pattern) => new RegExp(pattern.source, addFlag(pattern.flags, "g")));
  if (known.length + global.length === 0) return undefined;
  return (text) => {
    let out = text;
    for (const secret of known) if (out.includes(secret)) out = out.replaceAll(secret, REDACTED);
    for (const pattern of global) out = out.replace(pattern, REDACTED);
    return out;
  };
}

/** Says of JSON in UTF-8 that it surely holds none of the secrets, without parsing it. False where that takes a parser: a
 *  secret may be spelled in escapes. Undefined if there is more to look for than secrets that stand in JSON as they are. */
export function plainlyClear(
  secrets: readonly string[],
  patterns: readonly RegExp[],
): ((json: Buffer) => boolean) | undefined {
  const known = sought(secrets);
  const isPlain = known.every((secret) => /^[\x20-\x7e]+$/.test(secret) && !/["\\]/.test(secret));
  if (patterns.length > 0 || !isPlain) return undefined;
  const spelled = known.map((secret) => Buffer.from(secret));
  return (json) => {
    const hasEscapes = json.includes(BACKSLASH) && (json.includes("\\u") || json.includes("\\/"));
    return !hasEscapes && spelled.every((secret) => !json.includes(secret));
  };
}

/** A secret shorter than eight characters would hit ordinary words. */
function sought(secrets: readonly string[]): string[] {
  return [...new Set(secrets)].filter((secret) => secret.length >= 8);
}

/** Deeper than text that is parsed nests. */
const MAX_DEPTH = 2 * MAX_NESTING;

/** Applies `redact` to every string, keys of objects included. Copies only where something changed. */
export function redactStrings(value: unknown, redact: (text: string) => string, depth = 0): unknown {
  if (typeof value === "string") return redact(value);
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
