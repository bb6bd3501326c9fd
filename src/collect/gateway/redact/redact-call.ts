/** What of a call may reach the disk. In: a request and its reply, as bytes, and what they say. Out: undefined if there is
 *  nothing to hide; otherwise the facts without it. Runs before anything is journaled; only where something is to be
 *  redacted does it look at all. Pure, apart from the hook it is given. */
import type { JsonObject, ReplyFacts, RequestFacts } from "../dialects/index.ts";
import { extractMedia } from "../wire/index.ts";
import { type RedactOptions, redactText, redactValue } from "./redact.ts";
import { REDACTED } from "./secrets.ts";

interface CallInClear {
  /** What the body says. */
  readonly request: () => RequestFacts;
  readonly body: Buffer;
  readonly reply: () => ReplyFacts;
  readonly replyBytes: readonly Buffer[];
  /** What the events of a reply spell together; none where it is one text. */
  readonly joinedTexts: () => Iterable<string>;
}

interface RedactedCall {
  readonly request: RequestFacts;
  readonly reply: ReplyFacts;
  /** What the messages carried beside text: they name it by digest already. */
  readonly media: readonly Uint8Array[];
}

export type RedactCall = (call: CallInClear) => RedactedCall | undefined;

/** Undefined if nothing is ever redacted. */
export function redactCall(options: RedactOptions): RedactCall | undefined {
  const { redact, secrets, patterns } = options;
  if (redact === undefined && secrets === undefined && patterns.length === 0) return undefined;
  return (call) => {
    const holdsSecret = findsIn(call, options);
    if (!holdsSecret && redact === undefined && patterns.length === 0) return undefined;
    const cleaned = cleanedCall(call, options);
    // What the record leaves out of a reply may hold something as well; and a hook sees the facts only.
    const mayStay = redact === undefined && !holdsSecret && !cleaned.changed && !matchesIn(call, options);
    return mayStay ? undefined : withoutTraces(cleaned, options);
  };
}

/** Whether a secret stands anywhere in the call, in one piece or in the pieces of a stream. */
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
  /** Something was found in the facts. */
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
    // Only a router and a budget read it, before the call; among the parameters it stands as sent.
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
  // The ids of a text spell the text: what is redacted there must not come back here.
  const { tokens: _, ...withoutTokens } = reply;
  return { request, reply: changed ? withoutTokens : reply, media: found, changed };
}

/** Whatever was missed value by value, as a secret that stands in two of them, is not written either. */
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
