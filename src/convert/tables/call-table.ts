/** The table of calls: one row per model call. Messages are stored as digests: a history that every call resends would
 *  make the file grow with the square of the turns. */
import type { Digest } from "../../base/index.ts";
import { Call, type RolloutEnvelope } from "../../contract/index.ts";
import { readRecord } from "../../store/index.ts";
import { nested, real, text, time, whole } from "./table-column.ts";
import type { BookTable, TabledRollout } from "./tabled-rollout.ts";

interface TabledCall {
  readonly rollout: TabledRollout;
  readonly index: number;
  readonly digest: Digest;
  readonly call: Call;
  /** Undefined: not measured. */
  readonly times: NonNullable<RolloutEnvelope["callTimes"]>[number] | undefined;
}

export const callTable: BookTable<TabledCall> = {
  columns: [
    text("rollout_id", ({ rollout }) => rollout.content.rolloutId),
    text("content", ({ rollout }) => rollout.listed.content),
    whole("call", ({ index }) => index),
    text("digest", ({ digest }) => digest),
    text("dialect", ({ call }) => call.dialect),
    text("model", ({ call }) => call.model),
    text("family", ({ call }) => call.revision?.family),
    text("revision", ({ call }) => call.revision?.id),
    text("revision_digest", ({ call }) => call.revision?.digest),
    whole("status", ({ call }) => call.response.status),
    text("finish_reason", ({ call }) => call.response.finishReason),
    whole("prompt_tokens", ({ call }) => call.usage?.promptTokens),
    whole("completion_tokens", ({ call }) => call.usage?.completionTokens),
    whole("cached_tokens", ({ call }) => call.usage?.cachedTokens),
    real("cost_usd", ({ call }) => call.costUsd),
    time("started_at", ({ times }) => times?.startedAtMs),
    real("first_byte_ms", ({ times }) => times?.firstByteMs),
    real("duration_ms", ({ times }) => times?.durationMs),
    real("declared_latency_ms", ({ call }) => call.declaredLatencyMs),
    text("delivery", ({ times }) => times?.delivery),
    nested("parameters", ({ call }) => call.request.parameters),
    text("tools", ({ call }) => call.request.tools),
    nested("request_messages", ({ call }) => call.request.messages),
    nested("response_messages", ({ call }) => call.response.messages),
  ],
  async *itemsOf(rollout, read) {
    const { content, envelope } = rollout;
    for (const [index, digest] of content.calls.entries())
      yield {
        ...{ rollout, index, digest, call: await readRecord(read, Call, digest) },
        times: envelope.callTimes?.[index],
      };
  },
};
