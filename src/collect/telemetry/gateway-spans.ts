/** Spans of calls and rollouts, by the OpenTelemetry semantic conventions for generative AI. In: an event of a
 *  gateway. Out: a span, or undefined if the event has no span. Ids are derived from the names of book, rollout and
 *  call. A call span thus finds its rollout without stored state, also after a restart. Pure. Exports no message,
 *  prompt or reply. */
import { digestJson } from "../../base/index.ts";
import { dialectNamed } from "../gateway/dialects/index.ts";
import type { CallEvent, GatewayEvent, RolloutClosedEvent } from "../gateway/index.ts";
import {
  attributesOf,
  type OtlpSpan,
  real,
  SPAN_KIND,
  STATUS_ERROR,
  text,
  texts,
  unixNano,
  whole,
} from "./otlp-span.ts";

/** `book` is the id of the book: rollout names are unique only within a book. */
export function spanOf(event: GatewayEvent, book: string): OtlpSpan | undefined {
  switch (event.kind) {
    case "call":
      return callSpan(event, book);
    case "rollout":
      return rolloutSpan(event, book);
    case "failover":
      // The span of the call names the candidates that failed.
      return undefined;
    case "refusal":
      // A refusal is not a call of a model.
      return undefined;
    default:
      return event satisfies never;
  }
}

function callSpan(event: CallEvent, book: string): OtlpSpan | undefined {
  const own = rolloutIds(book, event.rollout);
  const [, caller, callerSpan, flags] = event.traceparent?.split("-") ?? [];
  // The caller does not sample its trace, so it wants no child spans.
  if (flags !== undefined && (Number.parseInt(flags, 16) & 1) === 0) return undefined;
  const parent = event.single === true ? {} : { parentSpanId: own.spanId };
  const { operation } = dialectNamed(event.dialect);
  const isError = event.outcome !== "answered";
  return {
    ...(caller === undefined
      ? { traceId: own.traceId, ...parent }
      : { traceId: caller, parentSpanId: callerSpan!, ...(event.single === true ? {} : { links: [own] }) }),
    spanId: digestJson("rollbook.call-span.v1", [book, event.rollout, event.call]).slice(7, 23),
    name: `${operation} ${event.model}`.toWellFormed(),
    kind: SPAN_KIND.client,
    startTimeUnixNano: unixNano(event.atMs - event.durationMs),
    endTimeUnixNano: unixNano(event.atMs),
    attributes: attributesOf({
      "gen_ai.operation.name": text(operation),
      ...genAiAttributes(event),
      "error.type": isError ? text(errorType(event)) : undefined,
      ...rollbookAttributes(event),
      ...routeAttributes(event),
    }),
    ...(isError ? { status: { code: STATUS_ERROR } } : {}),
  };
}

/** The values that the conventions define. */
const FINISH_REASONS: Readonly<Record<NonNullable<CallEvent["finish"]>, string>> = {
  stop: "stop",
  length: "length",
  tools: "tool_call",
  other: "other",
};

function genAiAttributes({ dialect, model, served, promptTokens, completionTokens, finish }: CallEvent) {
  const provider = text(dialectNamed(dialect).vendor);
  return {
    "gen_ai.provider.name": provider,
    // Name of the same attribute in older versions of the conventions.
    "gen_ai.system": provider,
    "gen_ai.request.model": text(model),
    "gen_ai.response.model": text(served),
    "gen_ai.usage.input_tokens": promptTokens === undefined ? undefined : whole(promptTokens),
    "gen_ai.usage.output_tokens": completionTokens === undefined ? undefined : whole(completionTokens),
    "gen_ai.response.finish_reasons": finish === undefined ? undefined : texts([FINISH_REASONS[finish]]),
  };
}

function rollbookAttributes({ rollout, call, upstream, outcome, status, ...event }: CallEvent) {
  const { costUsd, firstByteMs, revision } = event;
  return {
    "http.response.status_code": whole(status),
    "rollbook.rollout.id": text(rollout),
    "rollbook.call": whole(call),
    "rollbook.upstream": text(upstream),
    "rollbook.outcome": text(outcome),
    "rollbook.cost_usd": costUsd === undefined ? undefined : real(costUsd),
    "rollbook.first_byte_ms": firstByteMs === undefined ? undefined : real(firstByteMs),
    "rollbook.model.revision.id": revision && text(revision.id),
    "rollbook.model.revision.digest": revision && text(revision.digest),
  };
}

function routeAttributes({ route, candidate }: CallEvent) {
  if (route === undefined) return {};
  const { family, revision, policy, reason, probability, confidence, candidates, failed } = route;
  return {
    "rollbook.route.candidate": candidate === undefined ? undefined : text(candidate),
    "rollbook.route.candidates": whole(candidates),
    "rollbook.route.family": text(family),
    "rollbook.route.revision.id": text(revision.id),
    "rollbook.route.revision.digest": text(revision.digest),
    "rollbook.route.policy.id": policy && text(policy.id),
    "rollbook.route.policy.digest": policy && text(policy.digest),
    "rollbook.route.reason": text(reason),
    "rollbook.route.probability": real(probability),
    "rollbook.route.confidence": confidence === undefined ? undefined : real(confidence),
    "rollbook.route.failed": failed && texts(failed),
  };
}

/** The conventions demand few values: the status, or the way the reply was cut. */
function errorType({ outcome, status }: CallEvent): string {
  return outcome === "cut" || outcome === "disconnected" ? outcome : String(status);
}

/** Rollout token counts have their own names: a sum of `gen_ai.usage` over all spans would count calls twice. */
function rolloutSpan(event: RolloutClosedEvent, book: string): OtlpSpan {
  const isError = event.ending === "failed";
  return {
    ...rolloutIds(book, event.rollout),
    name: "invoke_agent",
    kind: SPAN_KIND.internal,
    startTimeUnixNano: unixNano(Math.min(event.openedAtMs, event.atMs)),
    endTimeUnixNano: unixNano(event.atMs),
    attributes: attributesOf({
      "gen_ai.operation.name": text("invoke_agent"),
      "error.type": isError ? text(event.owner ?? "failed") : undefined,
      "rollbook.rollout.id": text(event.rollout),
      "rollbook.task.id": text(event.task),
      "rollbook.rollout.ending": text(event.ending),
      "rollbook.rollout.calls": whole(event.calls),
      "rollbook.rollout.input_tokens": whole(event.promptTokens),
      "rollbook.rollout.output_tokens": whole(event.completionTokens),
      "rollbook.rollout.cost_usd": event.costUsd === undefined ? undefined : real(event.costUsd),
      "rollbook.rollout.content.digest": event.content === undefined ? undefined : text(event.content),
      "rollbook.rollout.envelope.digest": event.envelope === undefined ? undefined : text(event.envelope),
    }),
    ...(isError ? { status: { code: STATUS_ERROR } } : {}),
  };
}

function rolloutIds(book: string, rollout: string): { traceId: string; spanId: string } {
  const hex = digestJson("rollbook.trace.v1", [book, rollout]).slice(7);
  return { traceId: hex.slice(0, 32), spanId: hex.slice(32, 48) };
}
