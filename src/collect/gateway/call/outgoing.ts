/** The request as it goes to an upstream. In: what the client sent, and the target. Out: headers and body. A body
 *  changes only where a routed alias or a configured capture says so; every other byte passes as it came. Pure. */
import { type DialectName, isObject, type RequestFacts } from "../dialects/index.ts";
import type { Target } from "../upstream/index.ts";
import { spliceFields } from "./splice-json.ts";

/** Of the client's headers these say nothing to an upstream, or are ours to say. */
const NOT_PASSED: ReadonlySet<string> = new Set([
  ...["host", "connection", "keep-alive", "proxy-authorization", "proxy-connection", "te", "trailer"],
  ...["transfer-encoding", "upgrade", "expect", "content-length", "authorization", "x-api-key", "api-key"],
  // A compressed reply could not be recorded as it passes.
  ...["accept-encoding", "cookie", "origin", "referer", "forwarded", "x-forwarded-for", "x-real-ip"],
]);

/** Names and values in turn, as undici takes them. */
export function passedHeaders(raw: readonly string[]): string[] {
  const headers: string[] = [];
  for (let i = 0; i < raw.length; i += 2) {
    const name = raw[i]!.toLowerCase();
    if (!NOT_PASSED.has(name) && !name.startsWith("x-rollbook-")) headers.push(name, raw[i + 1]!);
  }
  return headers;
}

/** Undefined if the body passes as it is. */
export function rewrittenBody(
  body: Buffer,
  request: RequestFacts,
  { dialect, target }: { dialect: DialectName; target: Target },
): Buffer | undefined {
  if (target.model === request.model && target.capture === undefined) return undefined;
  const fields: Record<string, unknown> = {};
  if (target.model !== request.model) fields.model = target.model;
  if (target.capture !== undefined)
    for (const [name, value] of Object.entries(captureFields(dialect, target.capture, request.stream)))
      if (!isAsked(request.parameters[name], value)) fields[name] = value;
  return Object.keys(fields).length === 0 ? undefined : Buffer.from(spliceFields(body.toString(), fields));
}

/** By what versions before `return_token_ids` give prompt ids, and ids with logprobs. */
const SGLANG_CHAT = { return_prompt_token_ids: true, return_meta_info: true };

function captureFields(
  dialect: DialectName,
  capture: NonNullable<Target["capture"]>,
  stream: boolean,
): Readonly<Record<string, unknown>> {
  const isText = dialect === "openai-completions";
  if (dialect !== "openai-chat" && !isText) return capture.fields;
  const logprobs = isText ? { logprobs: 1 } : { logprobs: true };
  switch (capture.tokens) {
    case undefined:
      return capture.fields;
    case "vllm":
      return { return_token_ids: true, ...logprobs, ...capture.fields };
    case "sglang":
      // It refuses to stream a chat with ids: such a stream is recorded without them.
      if (stream && !isText) return capture.fields;
      return { return_token_ids: true, ...(isText ? {} : SGLANG_CHAT), ...logprobs, ...capture.fields };
    default:
      return capture.tokens satisfies never;
  }
}

/** What the client asks for itself is left as it is. */
function isAsked(asked: unknown, wanted: unknown): boolean {
  if (asked === undefined || asked === null || asked === false) return false;
  return isObject(asked) ? JSON.stringify(asked) === JSON.stringify(wanted) : true;
}

const NOT_RETURNED: ReadonlySet<string> = new Set([
  ...[
    "connection",
    "keep-alive",
    "transfer-encoding",
    "proxy-authenticate",
    "trailer",
    "upgrade",
    "set-cookie",
  ],
]);

/** Names and values in turn, as node:http takes them without another look. */
export function returnedHeaders(headers: Readonly<Record<string, string | string[] | undefined>>): string[] {
  const out: string[] = [];
  for (const name in headers) {
    const value = headers[name];
    if (value === undefined || NOT_RETURNED.has(name)) continue;
    if (typeof value === "string") out.push(name, value);
    else for (const each of value) out.push(name, each);
  }
  return out;
}
