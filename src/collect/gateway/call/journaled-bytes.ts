/** Selects the parts of a call for the journal. In: the request and reply as they passed, and the redaction. Out:
 *  the bytes; or, if these must not be stored, the redacted facts and the digests of the bytes. Writes nothing. */
import type { Digest } from "../../../base/index.ts";
import type { RequestFacts } from "../dialects/index.ts";
import type { CalledParts } from "../journal/index.ts";
import type { RedactCall } from "../redact/index.ts";
import { digestBody, type ReadReply, type ReplyReader } from "../wire/index.ts";

interface KeptParts extends CalledParts {
  /** True if the redaction found that the reply is incomplete. */
  readonly cut?: boolean;
}

interface PassedCall {
  /** Facts of the body. */
  readonly request: () => RequestFacts;
  readonly body: Buffer;
  /** Undefined if no reply began. */
  readonly reader: ReplyReader | undefined;
  /** The reply exceeded the size limit: the journal stores only its digest. */
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

/** Undefined if there is nothing to redact. */
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
    // Bytes that are not stored need no search.
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
