/** One model call as it crossed the wire, and its messages. Messages are separate blobs, so a history that is resent
 *  with every turn is stored once. Measured times are in the envelope. */
import * as z from "zod";
import { canonicalize, type Digest, digestBytes, digestJson, type Json } from "../../base/index.ts";
import {
  count,
  defineRecord,
  digest,
  finite,
  id,
  jsonObject,
  parseCanonical,
  type RecordOf,
  refuse,
  text,
} from "../codec/index.ts";
import { revisionKey } from "../policy/index.ts";

export const MESSAGE_KIND = "rollbook.message.v1";
/** Bytes of an image, a sound or a file that a message carried; the message names them by digest. */
export const MEDIA_KIND = "rollbook.media.v1";
/** Kind of a request or reply body, byte for byte as it crossed the wire. */
export const BODY_KIND = "rollbook.body.v1";

/** Status of a call whose client disconnected before the reply was complete, as in nginx. */
export const CLIENT_LEFT = 499;

export const Call = defineRecord({
  kind: "rollbook.call.v1",
  summary:
    "One model call: request and response by message digests, parameters, usage, the revision that answered.",
  shape: {
    dialect: z.enum(["openai-chat", "openai-responses", "openai-completions", "anthropic-messages", "other"]),
    model: text(512),
    revision: z.optional(z.strictObject({ family: id, ...revisionKey.shape })),
    request: z.strictObject({
      messages: z.array(digest).max(100_000),
      /** The tools offered, as one blob: like messages, they are resent with every turn. */
      tools: z.optional(digest),
      parameters: jsonObject,
      bodyDigest: z.optional(digest),
      /** Digest of the request that was sent upstream, if it differs from the request received: a routed alias, a
       *  configured capture. */
      sentDigest: z.optional(digest),
    }),
    response: z.strictObject({
      messages: z.array(digest).max(1024),
      finishReason: z.optional(text(128)),
      status: z.optional(count),
      bodyDigest: z.optional(digest),
    }),
    /** Media that the messages carried beside text. */
    media: z.optional(z.array(digest).max(10_000)),
    /** Bodies that the messages above cannot reproduce exactly, because canonical JSON cannot express them. Examples:
     *  lone surrogates, numbers that overflow, deep nesting, or text that is not JSON. Each entry is one of the two
     *  body digests. */
    bodies: z.optional(z.array(digest).min(1).max(2)),
    usage: z.optional(
      z.strictObject({ promptTokens: count, completionTokens: count, cachedTokens: z.optional(count) }),
    ),
    tokenizer: z.optional(digest),
    costUsd: z.optional(finite),
    declaredLatencyMs: z.optional(finite),
  },
  references: (call) => [
    ...call.request.messages.map((message, i) => ({
      digest: message,
      kind: MESSAGE_KIND,
      field: `request.messages[${i}]`,
    })),
    ...call.response.messages.map((message, i) => ({
      digest: message,
      kind: MESSAGE_KIND,
      field: `response.messages[${i}]`,
    })),
    ...(call.request.tools === undefined
      ? []
      : [{ digest: call.request.tools, kind: MESSAGE_KIND, field: "request.tools" }]),
    // An artifact may travel without its media.
    ...(call.media ?? []).map((each, i) => ({
      digest: each,
      kind: MEDIA_KIND,
      field: `media[${i}]`,
      external: true,
      what: "media",
    })),
    // An artifact may travel without bodies whose messages are present.
    ...(call.bodies ?? []).map((each, i) => ({
      digest: each,
      kind: BODY_KIND,
      field: `bodies[${i}]`,
      external: true,
      what: "body",
    })),
  ],
  check(call) {
    const known = [call.request.bodyDigest, call.response.bodyDigest];
    const foreign = (call.bodies ?? []).findIndex((each) => !known.includes(each));
    if (foreign >= 0)
      throw refuse(
        "bad-record",
        { field: `bodies[${foreign}]` },
        `bodies[${foreign}] is neither the request's bodyDigest nor the response's.`,
      );
  },
});
export type Call = RecordOf<typeof Call>;

/** A message as a blob: any JSON object, in canonical form. */
export function sealMessage(message: Json): { kind: string; digest: Digest; bytes: Uint8Array } {
  const bytes = Buffer.from(canonicalize(message));
  return { kind: MESSAGE_KIND, digest: digestBytes(MESSAGE_KIND, bytes), bytes };
}

export function openMessage(bytes: Uint8Array, where: string): unknown {
  return parseCanonical(bytes, where);
}

/** Digest that a call-log proof binds: the calls of a rollout in order. */
export function digestCallLog(calls: readonly Digest[]): Digest {
  return digestJson("rollbook.call-log.v1", calls);
}

/** Cost of a call in US dollars; undefined if unknown. An error without a recorded cost counts as 0, as in the budget
 *  of a rollout. Otherwise one refused call would make the cost of the whole rollout unknown. A call whose client
 *  disconnected may have been billed, so its cost stays unknown. */
export function spentBy({
  costUsd,
  status = 200,
}: {
  readonly costUsd?: number | undefined;
  readonly status?: number | undefined;
}): number | undefined {
  return costUsd ?? (status >= 400 && status !== CLIENT_LEFT ? 0 : undefined);
}
