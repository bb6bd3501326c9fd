/** Reads the usage of a whole reply without parsing all of it. Replies are long, and a call waits for this one fact.
 *  In: the bytes of a reply. Out: the usage, as the dialect would read it from the parsed reply. Looks for a single
 *  `usage` key near the end, at the top level; parses the whole reply in any other case. Pure. */
import { type Dialect, isObject, type TokenUsage, tryParse } from "../dialects/index.ts";

const KEY = '"usage"';
const KEY_BYTES = Buffer.from(KEY);
/** Maximum distance of the usage from the end. In the known formats only an id or a tier follows it. */
const MAX_TAIL = 1024;

export function readUsage(reply: Buffer, dialect: Dialect): TokenUsage | undefined {
  const at = reply.indexOf(KEY_BYTES);
  if (at < 0) return undefined;
  if (reply.length - at > MAX_TAIL) return parseWhole(reply, dialect);
  // Quotes inside a string are escaped, so this match begins a key or a whole string. Counts are ASCII, so latin1 is
  // enough.
  const rest = reply.toString("latin1", at + KEY_BYTES.length);
  const usage = rest.includes(KEY) ? undefined : onlyValue(rest);
  return usage === undefined ? parseWhole(reply, dialect) : dialect.readUsage({ usage });
}

function parseWhole(reply: Buffer, dialect: Dialect): TokenUsage | undefined {
  const body = tryParse(reply.toString());
  return isObject(body) ? dialect.readUsage(body) : undefined;
}

/** The value of `usage`. Undefined unless only further members and the end of the top-level object follow it. */
function onlyValue(rest: string): unknown {
  const colon = /^\s*:/.exec(rest);
  if (colon === null || !rest.trimEnd().endsWith("}")) return undefined;
  // Parses as the rest of an object only if the key was at the top level.
  const object = tryParse(`{"usage":${rest.slice(colon[0].length)}`);
  return isObject(object) && isObject(object.usage) ? object.usage : undefined;
}
