/** Watches a gateway and exports spans. In: an environment, events. Out: OTLP requests; lines for `GET /metrics`.
 *  Undefined unless the environment names an endpoint. */
import type { GatewayEvent } from "../gateway/index.ts";
import { spanOf } from "./gateway-spans.ts";
import { type OtelVariables, otlpConfig } from "./otlp-config.ts";
import { attributesOf, text } from "./otlp-span.ts";
import { type ExportLimits, SpanExporter } from "./span-exporter.ts";

export interface GatewayTelemetry {
  onEvent(event: GatewayEvent): void;
  /** Lines in the Prometheus text format. */
  metrics(): string;
  /** Sends the remaining spans within that time, and drops the rest. */
  close(withinMs: number): Promise<void>;
}

export function openTelemetry(
  env: OtelVariables,
  {
    book,
    worker,
    log,
    limits,
  }: {
    /** The id of the book. */
    readonly book: string;
    readonly worker: string;
    readonly log?: ((line: string) => void) | undefined;
    readonly limits?: Partial<ExportLimits> | undefined;
  },
): GatewayTelemetry | undefined {
  const config = otlpConfig(env);
  if (config === undefined) return undefined;
  const { url, headers } = config;
  const own = { "rollbook.book.id": text(book), "rollbook.worker": text(worker) };
  const given = Object.fromEntries([...config.resource].map(([name, value]) => [name, text(value)]));
  const resource = attributesOf({ ...own, ...given });
  const exporter = new SpanExporter({ url, headers, resource, limits, log: (line) => log?.(line) });
  return {
    onEvent(event) {
      const span = spanOf(event, book);
      if (span !== undefined) exporter.add(span);
    },
    metrics: () => metricsOf(exporter),
    close: (withinMs) => exporter.close(withinMs),
  };
}

function metricsOf({ exported, dropped, queued }: SpanExporter): string {
  return [
    "# HELP rollbook_telemetry_spans_total Spans that the OTLP receiver took, and spans that were dropped.",
    "# TYPE rollbook_telemetry_spans_total counter",
    `rollbook_telemetry_spans_total{result="exported"} ${exported}`,
    `rollbook_telemetry_spans_total{result="dropped"} ${dropped}`,
    "# HELP rollbook_telemetry_queued_spans Spans that wait to be sent.",
    "# TYPE rollbook_telemetry_queued_spans gauge",
    `rollbook_telemetry_queued_spans ${queued}`,
    "",
  ].join("\n");
}
