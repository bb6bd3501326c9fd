import { expect, it, vi } from "vitest";
import { OtlpReceiver } from "../../../test/support/otlp-receiver.ts";
import { type OtlpSpan, unixNano } from "./otlp-span.ts";
import { type ExportLimits, SpanExporter } from "./span-exporter.ts";

const span = (i: number): OtlpSpan => ({
  ...{ traceId: "a".repeat(32), spanId: String(i).padStart(16, "1"), name: `span ${i}`, kind: 1 },
  ...{ startTimeUnixNano: unixNano(1.7e12), endTimeUnixNano: unixNano(1.7e12 + 0.25), attributes: [] },
});

function exporterTo(base: string, limits: Partial<ExportLimits> = {}) {
  const lines: string[] = [];
  const exporter = new SpanExporter({
    ...{ url: new URL(`${base}/v1/traces`), headers: new Headers({ "content-type": "application/json" }) },
    ...{ resource: [], log: (line) => lines.push(line), limits: { delayMs: 5, ...limits } },
  });
  return { exporter, lines };
}

it("sends batches of bounded size, and every span once", async () => {
  const receiver = await OtlpReceiver.open();
  const { exporter, lines } = exporterTo(receiver.url, { batch: 4 });
  for (let i = 0; i < 10; i++) exporter.add(span(i));
  await vi.waitFor(() => expect(exporter.exported).toBe(10));
  await exporter.close(1000);
  expect(receiver.spans.map(({ name }) => name)).toEqual(Array.from({ length: 10 }, (_, i) => `span ${i}`));
  expect(
    receiver.received.map(({ body }) => JSON.parse(body).resourceSpans[0].scopeSpans[0].spans.length),
  ).toEqual([4, 4, 2]);
  expect(receiver.spans[0]!.endTimeUnixNano).toBe("1700000000000250000");
  expect(lines).toEqual([]);
});

it("sends again what a busy receiver did not take, and drops what a receiver refuses or rejects", async () => {
  const receiver = await OtlpReceiver.open();
  receiver.statuses.push(503, 429);
  const { exporter, lines } = exporterTo(receiver.url);
  exporter.add(span(0));
  await vi.waitFor(() => expect(exporter.exported).toBe(1));
  expect(receiver.received.length).toBe(3);
  receiver.statuses.push(400);
  exporter.add(span(1));
  await vi.waitFor(() => expect(exporter.dropped).toBe(1));
  receiver.reply = JSON.stringify({ partialSuccess: { rejectedSpans: "1", errorMessage: "too old" } });
  exporter.add(span(2));
  await vi.waitFor(() => expect(exporter.dropped).toBe(2));
  expect([exporter.exported, exporter.queued]).toEqual([1, 0]);
  expect(lines.map((line) => line.replace(receiver.url, "it"))).toEqual([
    "OpenTelemetry: it takes no spans: status 503",
    "OpenTelemetry: it refused spans: status 400",
    "OpenTelemetry: it refused spans: status 200",
  ]);
});

it("keeps as many spans as its queue holds while nobody listens, counts the others, and delivers once somebody does", async () => {
  const receiver = await OtlpReceiver.open();
  receiver.statuses.push(...new Array<number>(3).fill(503));
  const { exporter } = exporterTo(receiver.url, { queued: 3 });
  for (let i = 0; i < 5; i++) exporter.add(span(i));
  expect([exporter.queued, exporter.dropped]).toEqual([3, 2]);
  await vi.waitFor(() => expect(exporter.exported).toBe(3));
  await exporter.close(1000);
  expect([exporter.queued, exporter.dropped]).toEqual([0, 2]);
});

it("gives up a receiver that never answers when its time is over", async () => {
  const receiver = await OtlpReceiver.open();
  receiver.hangs = true;
  const { exporter } = exporterTo(receiver.url);
  exporter.add(span(0));
  await vi.waitFor(() => expect(receiver.received.length).toBe(1));
  const before = performance.now();
  await exporter.close(50);
  expect(performance.now() - before).toBeLessThan(2000);
  expect(exporter.dropped).toBe(1);
});

it("tells once that a receiver refuses every batch, drops the spans, and holds none of them", async () => {
  const receiver = await OtlpReceiver.open();
  receiver.statuses.push(...new Array<number>(6).fill(500));
  const { exporter, lines } = exporterTo(receiver.url, { batch: 2, queued: 8 });
  for (let i = 0; i < 6; i++) {
    exporter.add(span(i));
    await vi.waitFor(() => expect(exporter.dropped).toBe(i + 1));
  }
  expect([exporter.queued, exporter.exported, lines.length]).toEqual([0, 0, 1]);
  exporter.add(span(6));
  await vi.waitFor(() => expect(exporter.exported).toBe(1));
  receiver.statuses.push(500);
  exporter.add(span(7));
  await vi.waitFor(() => expect(exporter.dropped).toBe(7));
  expect(lines).toEqual(new Array(2).fill(`OpenTelemetry: ${receiver.url} refused spans: status 500`));
});

it("reads the beginning of a reply that does not end, and goes on with the next batch", async () => {
  const receiver = await OtlpReceiver.open();
  receiver.endless = true;
  const { exporter } = exporterTo(receiver.url, { timeoutMs: 60_000 });
  exporter.add(span(0));
  await vi.waitFor(() => expect(exporter.exported).toBe(1), { timeout: 10_000 });
  receiver.endless = false;
  exporter.add(span(1));
  await vi.waitFor(() => expect(exporter.exported).toBe(2));
});
