/** What of a call goes into the journal. In: request and reply as they passed, and what is to be redacted.
 *  Out: the bytes themselves; or, where those must not be kept, what may be, and their digests. Writes nothing. */
import type { RequestFacts } from "./dialects/dialect.ts";
import type { CalledFacts, CalledParts } from "./journal.ts";
import { digestBody } from "./recorder.ts";
import type { RedactCall } from "./redact-call.ts";
import type { ReadReply, ReplyReader } from "./reply-reader.ts";

export interface KeptParts {
  readonly forms: Pick<CalledFacts, "requestForm" | "replyForm" | "bodyDigest" | "replyDigest">;
  readonly parts: CalledParts;
  /** Found out on the way: the reply is not whole. */
  readonly cut?: boolean;
}

export interface PassedCall {
  readonly request: RequestFacts;
  readonly body: Buffer;
  /** Undefined where no reply began. */
  readonly reader: ReplyReader | undefined;
  /** The reply passed the limit: its digest is all that stays. */
  readonly tooLarge: boolean;
  readonly redact: RedactCall | undefined;
}

const NO_REPLY: ReadReply = { reply: { messages: [] }, complete: true };
const NO_MEDIA: readonly Uint8Array[] = [];

export function partsToKeep({ request, body, reader, tooLarge, redact }: PassedCall): KeptParts {
  const replyBytes = reader?.chunks ?? [];
  const replyDigest = () => (reader === undefined ? undefined : digestBody(Buffer.concat(replyBytes)));
  const isKept = reader !== undefined && !tooLarge;
  if (redact !== undefined) {
    const { reply, complete } = isKept ? reader.finish() : NO_REPLY;
    const redacted = redact({ request, body, reply, replyBytes });
    if (redacted !== undefined)
      return {
        forms: {
          ...{ requestForm: "facts", replyForm: "facts" },
          ...{ bodyDigest: digestBody(body), replyDigest: replyDigest() },
        },
        parts: {
          ...{ request: jsonBytes(redacted.request), reply: [jsonBytes(redacted.reply)] },
          media: redacted.media,
        },
        cut: !complete,
      };
  }
  if (isKept)
    return {
      forms: { requestForm: "body", replyForm: reader.form },
      parts: { request: body, reply: replyBytes, media: NO_MEDIA },
    };
  return {
    forms: { requestForm: "body", replyForm: "none", replyDigest: replyDigest() },
    parts: { request: body, reply: [], media: NO_MEDIA },
  };
}

export function jsonBytes(value: unknown): Buffer {
  return Buffer.from(JSON.stringify(value));
}
