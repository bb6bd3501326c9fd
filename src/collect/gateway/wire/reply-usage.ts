/** What a whole reply used, without parsing all of it: replies are long, and a call waits for this one fact.
 *  In: the bytes of a reply. Out: what the dialect reads from the parsed reply. Looks for the only `usage` there is,
 *  near the end, at the top level; whatever looks different is parsed whole. Pure. */
import { type Dialect, isObject, type TokenUsage, tryParse } from "../dialects/index.ts";

const KEY = '"usage"';
const KEY_BYTES = Buffer.from(KEY);
/** What follows the usage in a reply of one of the formats we know: an id, a tier, no more. */
const MAX_TAIL = 1024;

export function readUsage(reply: Buffer, dialect: Dialect): TokenUsage | undefined {
  const at = reply.indexOf(KEY_BYTES);
  if (at < 0) return undefined;
  if (reply.length - at > MAX_TAIL) return parseWhole(reply, dialect);
  // Quotes inside a text are escaped: this one begins a key or a text of its own. Counts are ASCII.
  const rest = reply.toString("latin1", at + KEY_BYTES.length);
  const usage = rest.includes(KEY) ? undefined : onlyValue(rest);
  return usage === undefined ? parseWhole(reply, dialect) : dialect.readUsage({ usage });
}

function parseWhole(reply: Buffer, dialect: Dialect): TokenUsage | undefined {
  const body = tryParse(reply.toString());
  return isObject(body) ? dialect.readUsage(body) : undefined;
}

/** The value, if what follows it are more members and the end of the object, and nothing was open around it. */
function onlyValue(rest: string): unknown {
  const colon = /^\s*:/.exec(rest);
  if (colon === null || !rest.trimEnd().endsWith("}")) return undefined;
  // Valid as the rest of an object only if the key stood at the top level.
  const object = tryParse(`{"usage":${rest.slice(colon[0].length)}`);
  return isObject(object) && isObject(object.usage) ? object.usage : undefined;
}
