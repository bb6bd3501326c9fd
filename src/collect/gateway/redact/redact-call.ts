/** What of a call may reach the disk. In: a request and its reply, parsed and as bytes. Out: undefined if the bytes
 *  hold nothing to hide; otherwise the facts without it. Runs before anything is journaled; only where something is
 *  to be redacted does it look at all. Pure, apart from the hook it is given. */
import type { Json } from "../../../base/index.ts";
import type { JsonObject, ReplyFacts, RequestFacts } from "../dialects/index.ts";
import { extractMedia } from "../wire/index.ts";
import { type Redact, redactStrings } from "./redact.ts";

export interface CallInClear {
  /** What the body says. */
  readonly request: () => RequestFacts;
  readonly body: Buffer;
  readonly reply: () => ReplyFacts;
  readonly replyBytes: readonly Buffer[];
  /** The reply is one JSON text, not events that make one together. */
  readonly isWhole: boolean;
}

export interface RedactedCall {
  readonly request: RequestFacts;
  readonly reply: ReplyFacts;
  /** What the messages carried beside text: they name it by digest already. */
  readonly media: readonly Uint8Array[];
}

export type RedactCall = (call: CallInClear) => RedactedCall | undefined;

export interface RedactOptions {
  readonly redact: Redact | undefined;
  readonly redactText: ((text: string) => string) | undefined;
  /** Says of JSON that there is nothing to hide in it; may say no for want of a closer look. */
  readonly isPlainlyClear?: ((json: Buffer) => boolean) | undefined;
}

/** A value that is recorded beside calls: the same object if there is nothing to hide in it. */
export function redactValue(given: Json, { redact, redactText }: RedactOptions): Json {
  const value = redact === undefined ? given : redact(given);
  return redactText === undefined ? value : (redactStrings(value, redactText) as Json);
}

/** Undefined if nothing is ever redacted. */
export function redactCall(options: RedactOptions): RedactCall | undefined {
  const { redact, redactText, isPlainlyClear } = options;
  if (redact === undefined && redactText === undefined) return undefined;
  const isClearAsItIs = ({ body, replyBytes, isWhole }: CallInClear) =>
    redact === undefined &&
    isWhole &&
    isPlainlyClear?.(body) === true &&
    isPlainlyClear(replyBytes.length === 1 ? replyBytes[0]! : Buffer.concat(replyBytes));
  return (call) => {
    // As almost every call is.
    if (isClearAsItIs(call)) return undefined;
    const seen: Seen = { media: [], changed: false };
    const clean = (value: unknown) => {
      const { message, media } = extractMedia(value);
      for (const { bytes } of media) seen.media.push(bytes);
      return cleanValue(message, seen, options);
    };
    const [request, reply] = [call.request(), call.reply()];
    const cleanRequest: RequestFacts = {
      ...request,
      messages: request.messages.map(clean),
      ...(request.tools === undefined ? {} : { tools: clean(request.tools) }),
      parameters: cleanValue(request.parameters, seen, options) as JsonObject,
    };
    const messages = reply.messages.map(clean);
    // What the record leaves out of a reply may hold a secret as well; and a hook sees the facts only.
    const mayStay =
      redact === undefined && !seen.changed && isClear([call.body, ...call.replyBytes], redactText!);
    if (mayStay) return undefined;
    // The ids of a text spell the text: what is redacted there must not come back here.
    const { tokens, ...rest } = reply;
    const kept = seen.changed || tokens === undefined ? rest : reply;
    return { request: cleanRequest, reply: { ...kept, messages }, media: seen.media };
  };
}

interface Seen {
  readonly media: Uint8Array[];
  changed: boolean;
}

function cleanValue(given: unknown, seen: Seen, options: RedactOptions): unknown {
  const value = redactValue(given as Json, options);
  if (value !== given) seen.changed = true;
  return value;
}

function isClear(parts: readonly Uint8Array[], redactText: (text: string) => string): boolean {
  const text = Buffer.concat(parts).toString();
  return redactText(text) === text;
}
