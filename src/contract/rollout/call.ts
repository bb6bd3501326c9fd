/** One model call as it crossed the wire, and the messages it carried.
 *  Messages are blobs of their own, so a history resent with every turn is stored once. Measured times are in the envelope. */
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
/** A request or a reply, byte for byte as it crossed the wire. */
export const BODY_KIND = "rollbook.body.v1";

/** The status of a call whose client left before the reply was whole, as nginx gives it. */
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
      /** The tools offered, as one blob: they are resent with every turn, like messages. */
      tools: z.optional(digest),
      parameters: jsonObject,
      bodyDigest: z.optional(digest),
      /** What was sent on, where that differs from what was received: a routed alias, a configured capture. */
      sentDigest: z.optional(digest),
    }),
    response: z.strictObject({
      messages: z.array(digest).max(1024),
      finishReason: z.optional(text(128)),
      status: z.optional(count),
      bodyDigest: z.optional(digest),
    }),
    /** What the messages carried beside text. */
    media: z.optional(z.array(digest).max(10_000)),
    /** Bodies that the messages above do not tell exactly, because no canonical JSON can: lone surrogates, numbers that
     *  overflow, deep nests, no JSON at all. Each is one of the two body digests. */
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
    // An artifact may travel without its pictures.
    ...(call.media ?? []).map((each, i) => ({
      digest: each,
      kind: MEDIA_KIND,
      field: `media[${i}]`,
      external: true,
    })),
    // … and without bodies whose messages are there.
    ...(call.bodies ?? []).map((each, i) => ({
      digest: each,
      kind: BODY_KIND,
      field: `bodies[${i}]`,
      external: true,
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

/** What a call-log proof binds: the calls of a rollout in order. */
export function digestCallLog(calls: readonly Digest[]): Digest {
  return digestJson("rollbook.call-log.v1", calls);
}

/** US dollars that a call cost; undefined: not known. Without a recorded cost, an error counts nothing, as in the budget of a
 *  rollout: one refused call would leave the cost of the whole rollout unknown. A client that left may have been billed. */
export function spentBy({
  costUsd,
  status = 200,
}: {
  readonly costUsd?: number | undefined;
  readonly status?: number | undefined;
}): number | undefined {
  return costUsd ?? (status >= 400 && status !== CLIENT_LEFT ? 0 : undefined);
}
