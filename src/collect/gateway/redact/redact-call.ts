/** Redacts a call before it reaches the disk. In: a request and its reply, as bytes and as facts. Out: undefined if
 *  there is nothing to redact; otherwise the redacted facts. Runs before anything is journaled, and only if
 *  redaction is configured. Pure, apart from the given hook. */
import type { JsonObject, ReplyFacts, RequestFacts } from "../dialects/index.ts";
import { extractMedia } from "../wire/index.ts";
import { type RedactOptions, redactText, redactValue } from "./redact.ts";
import { REDACTED } from "./secrets.ts";

interface CallInClear {
  /** Facts of the body. */
  readonly request: () => RequestFacts;
  readonly body: Buffer;
  readonly reply: () => ReplyFacts;
  readonly replyBytes: readonly Buffer[];
  /** Texts that the events of a reply form together. Empty if the reply is one text. */
  readonly joinedTexts: () => Iterable<string>;
}

interface RedactedCall {
  readonly request: RequestFacts;
  readonly reply: ReplyFacts;
  /** Media of the messages besides text. The messages already name them by digest. */
  readonly media: readonly Uint8Array[];
}

export type RedactCall = (call: CallInClear) => RedactedCall | undefined;

/** Undefined if redaction is off. */
export function redactCall(options: RedactOptions): RedactCall | undefined {
  const { redact, secrets, patterns } = options;
  if (redact === undefined && secrets === undefined && patterns.length === 0) return undefined;
  return (call) => {
    const holdsSecret = findsIn(call, options);
    if (!holdsSecret && redact === undefined && patterns.length === 0) return undefined;
    const cleaned = cleanedCall(call, options);
    // The bytes of a reply may hold a match that the record omits, and a hook sees only the facts.
    const mayStay = redact === undefined && !holdsSecret && !cleaned.changed && !matchesIn(call, options);
    return mayStay ? undefined : withoutTraces(cleaned, options);
  };
}

/** True if the call holds a secret, in one piece or split over the events of a stream. */
function findsIn({ body, replyBytes, joinedTexts }: CallInClear, { secrets }: RedactOptions): boolean {
  if (secrets === undefined) return false;
  const reply = replyBytes.length === 1 ? replyBytes[0]! : Buffer.concat(replyBytes);
  if (!secrets.isClear(body) || !secrets.isClear(reply)) return true;
  for (const text of joinedTexts()) if (secrets.redact(text) !== text) return true;
  return false;
}

function matchesIn({ body, replyBytes, joinedTexts }: CallInClear, { patterns }: RedactOptions): boolean {
  if (patterns.length === 0) return false;
  const texts = [body.toString(), Buffer.concat(replyBytes).toString(), ...joinedTexts()];
  return patterns.some((pattern) => texts.some((text) => text.search(pattern) >= 0));
}

interface CleanedCall extends RedactedCall {
  /** True if the redaction changed the facts. */
  readonly changed: boolean;
}

function cleanedCall(call: CallInClear, options: RedactOptions): CleanedCall {
  const found: Uint8Array[] = [];
  let changed = false;
  const cleanValue = (given: unknown) => {
    const value = redactValue(given as never, options);
    if (value !== given) changed = true;
    return value;
  };
  const cleanText = (given: string) => {
    const text = redactText(given, options);
    if (text !== given) changed = true;
    return text;
  };
  const isClear = (bytes: Buffer) => {
    const text = bytes.toString("latin1");
    const isClean = options.secrets?.isClear(bytes) !== false && redactText(text, options) === text;
    if (!isClean) changed = true;
    return isClean;
  };
  const clean = (value: unknown) => {
    const { message, media } = extractMedia(value, (bytes) => (isClear(bytes) ? undefined : REDACTED));
    for (const { bytes } of media) found.push(bytes);
    return cleanValue(message);
  };
  const [asked, { finishReason, ...said }] = [call.request(), call.reply()];
  const request: RequestFacts = {
    ...asked,
    // Only a router and a budget read `maxTokens`, before the call. The parameters keep it as sent.
    maxTokens: undefined,
    messages: asked.messages.map(clean),
    ...(asked.tools === undefined ? {} : { tools: clean(asked.tools) }),
    parameters: cleanValue(asked.parameters) as JsonObject,
  };
  const reply: ReplyFacts = {
    ...said,
    messages: said.messages.map(clean),
    ...(finishReason === undefined ? {} : { finishReason: cleanText(finishReason) }),
  };
  // Token ids encode the text, so they would reveal the redacted part.
  const { tokens: _, ...withoutTokens } = reply;
  return { request, reply: changed ? withoutTokens : reply, media: found, changed };
}

/** Replaces parts that still hold a secret, for example one that spans two values. */
function withoutTraces({ request, reply, media }: CleanedCall, options: RedactOptions): RedactedCall {
  const isClean = (value: unknown) => options.secrets?.finds(JSON.stringify(value)) !== true;
  const nothing = [{ content: REDACTED }];
  const { model, stream } = request;
  return {
    request: isClean(request)
      ? request
      : { model, stream, maxTokens: undefined, messages: nothing, parameters: {} },
    reply: isClean(reply) ? reply : { messages: nothing },
    media,
  };
}
