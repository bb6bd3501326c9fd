/** What of a call goes into the journal. In: request and reply as they passed, and what is to be redacted.
 *  Out: the bytes themselves; or, where those must not be kept, what may be, and their digests. Writes nothing. */
import type { Digest } from "../../../base/index.ts";
import type { RequestFacts } from "../dialects/index.ts";
import type { CalledParts } from "../journal/index.ts";
import type { RedactCall } from "../redact/index.ts";
import { digestBody, type ReadReply, type ReplyReader } from "../wire/index.ts";

interface KeptParts extends CalledParts {
  /** Found out on the way: the reply is not whole. */
  readonly cut?: boolean;
}

interface PassedCall {
  /** What the body says. */
  readonly request: () => RequestFacts;
  readonly body: Buffer;
  /** Undefined where no reply began. */
  readonly reader: ReplyReader | undefined;
  /** The reply passed the limit: its digest is all that stays. */
  readonly tooLarge: boolean;
}

const NO_REPLY: ReadReply = { reply: { messages: [] }, complete: true, hasUnread: false };
const NOTHING: readonly Uint8Array[] = [];

export function partsToKeep(call: PassedCall, redact: RedactCall | undefined): KeptParts {
  const { body, reader, tooLarge } = call;
  const redacted = redact === undefined ? undefined : redactedParts(call, redact);
  if (redacted !== undefined) return redacted;
  if (reader !== undefined && !tooLarge)
    return {
      requestForm: "body",
      request: body,
      replyForm: reader.form,
      reply: reader.chunks,
      media: NOTHING,
    };
  return {
    requestForm: "body",
    request: body,
    replyForm: "none",
    reply: NOTHING,
    replyDigest: digestOf(reader),
    media: NOTHING,
  };
}

/** Undefined if there is nothing to hide. */
function redactedParts(call: PassedCall, redact: RedactCall): KeptParts | undefined {
  const { request, body, reader, tooLarge } = call;
  let finished: ReadReply | undefined;
  const read = () => {
    finished ??= reader === undefined || tooLarge ? NO_REPLY : reader.finish();
    return finished;
  };
  const redacted = redact({
    request,
    body,
    reply: () => read().reply,
    // What is not kept need not be looked at.
    replyBytes: tooLarge ? [] : (reader?.chunks ?? []),
    joinedTexts: () => (tooLarge ? [] : (reader?.joinedTexts() ?? [])),
  });
  if (redacted === undefined) return undefined;
  return {
    requestForm: "facts",
    request: jsonBytes(redacted.request),
    bodyDigest: digestBody(body),
    replyForm: "facts",
    reply: [jsonBytes(redacted.reply)],
    replyDigest: digestOf(reader),
    media: redacted.media,
    cut: !read().complete,
  };
}

function digestOf(reader: ReplyReader | undefined): Digest | undefined {
  return reader === undefined ? undefined : digestBody(...reader.chunks);
}

export function jsonBytes(value: unknown): Buffer {
  return Buffer.from(JSON.stringify(value));
}
